// Package tools has one file per tool, and the one table of all of them.
//
// A tool file defines the name, the input and the answer of a tool. It turns a checked input into calls of engines, and
// their results and errors into text for the model. It decides nothing about permission, queues, limits of a result or
// auditing: server/pipeline does that for all tools.
//
// CONTRIBUTING.md says how to add a tool.
//
// No tool file uses anything of another. What several tools share is in packages of its own: tools/viewing shows files,
// tools/editing changes them, tools/running runs commands.
package tools
