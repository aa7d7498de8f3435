// Package hooks runs the operator's programs around calls.
//
// Each program gets one JSON object on its standard input and answers with its exit code
// and, if it likes, a JSON object. All that match an event run at the same time, each
// with a deadline; a refusal wins over everything else, and a crash is no opinion. The
// package knows no tools, no sessions and no MCP.
package hooks
