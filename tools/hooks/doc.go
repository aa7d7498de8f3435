// Package hooks runs the operator's programs around calls.
//
// Each program gets one JSON object on its standard input and answers with its exit code
// and, if it likes, a JSON object. All that match an event run at the same time, each
// with a deadline, in the environment of commands; a refusal wins over everything else,
// and a crash is no opinion unless the operator says that it blocks. Whatever a program
// leaves running is ended. The form of input and answer is that of the hook scripts which
// people already have for other agents. The package knows no tools, no sessions and no
// MCP.
package hooks
