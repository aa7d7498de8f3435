// Package upstream is a connection to one MCP server that codehand is a client of, over the pipes of a process that it
// starts or over HTTP, in either era of the protocol.
//
// What arrives is bounded before it is read as JSON, and one bad tool or block of a result costs only itself. Texts are
// as the server sent them: who shows them cleans them. The package is the one door to the client of mcp-go. It knows no
// tool, no rule and no session, and never connects again by itself.
package upstream
