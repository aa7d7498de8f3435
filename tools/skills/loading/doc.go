// Package loading makes the answer of one loaded skill: its text, with its commands run, and the permission rules that
// it brings for a while. tools/skills finds and parses skills. Each command is a call of its own, through
// server/pipeline.
package loading
