// Package hooks runs the operator's programs around calls.
//
// Each program gets one JSON object on its standard input and answers with its exit code and, optionally, a JSON
// object. All programs that match an event run at the same time, each with a deadline, in the environment of commands.
// A refusal wins over everything else; a crash counts as no opinion unless the operator says that it blocks. Processes
// that a program leaves behind are ended. Input and answer have the form that hook scripts for other agents use. The
// package knows no tools, no sessions and no MCP.
package hooks
