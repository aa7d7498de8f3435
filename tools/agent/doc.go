// Package agent runs sub-agents: which types there are, who executes them, how many at once, and what comes back.
//
// A sub-agent is executed by the first back-end that is available: a model behind an API (A), the command line of
// another agent (B), the client's own model (C); without any, a Brief says what is to be done (D). The calls of a
// sub-agent go to a Child, a session of its own that the server opens; this package never runs a tool and decides
// nothing about permissions. What a sub-agent says is a stranger's text: Scan takes from it what looks like words of
// the server, of a system or of a person.
package agent
