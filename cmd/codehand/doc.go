// Command codehand is the hands of a coding agent, as an MCP server.
//
// This package owns the process: arguments, terminal, signals and exit codes. Each command has its own file; root.go
// lists them. The work of a command is done in server, through the same pipeline as a client's calls.
package main
