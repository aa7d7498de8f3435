//go:build conformance

// Command conformance serves the tools, resources and prompts that the official suite of MCP asks for, on the
// transports of codehand. It is never shipped.
package main
