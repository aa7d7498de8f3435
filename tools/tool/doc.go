// Package tool is the contract between a tool and the house: what can be said about
// a tool without running it, how its input is bound, and what it gives back.
//
// The contract is free of MCP. Zero values are the strictest: a forgotten trait
// means run alone, ask first, assume the worst.
//
// A tool's author writes a Def over an input struct. Define reads the struct once, by
// reflection, into a tree of shapes; the published schema, the checks of Bind and the
// canonical form of an input all come from this one tree, so they cannot disagree.
package tool
