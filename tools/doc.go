// Package tools has one file per tool, and the one table of all of them.
//
// A tool file says what a tool is called, what it takes and what it answers. It turns a checked input into calls of
// engines, and what they return, errors above all, into words for the model. It decides nothing about permission,
// turns, limits of a result or auditing: the corridor does that, for all.
//
// To add a tool x_y:
//
//   - x_y.go: the input (xYInput, with json, jsonschema and rule tags), `var xY = tool.Define(…)`, runXY, and what
//     makes its texts; at most 150 lines. A hard part is an engine. Begin with no Traits, and add each with its reason.
//   - x_y.md: what the model must know, at most 2,000 bytes, first sentence first.
//   - all.go: one line.
//   - testdata/sessions/x_y: a good path, one refusal per code, and what must not happen.
//   - `go test ./tools -update` writes testdata/specs/x_y.json. Read the difference: it is what models will read.
//
// Nothing in one tool file is used by another. Words that several tools say are in refusals.go.
package tools
