// Package tools has one file per tool, and the one table of all of them.
//
// A tool file says what a tool is called, what it takes and what it answers. It turns a checked input into calls of
// engines, and what they return, errors above all, into words for the model. It decides nothing about permission,
// turns, limits of a result or auditing: the corridor does that, for all.
//
// How to add a tool is in CONTRIBUTING.md.
//
// Nothing in one tool file is used by another. Words and steps that several tools share are in rooms of their own: how
// a file is shown (tools/viewing) and changed (tools/editing), what becomes of a command (tools/running).
package tools
