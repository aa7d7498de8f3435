// Command codehand is the hands of a coding agent, as an MCP server.
//
// This room owns the process: arguments, terminal, signals and exit codes. Each
// command has its own file; root.go lists them. What a command does is done in
// server, through the same corridor that a client's calls walk.
package main
