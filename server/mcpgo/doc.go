// Package mcpgo is the one place where mcp-go is entered, by HandleMessage alone, with requests that are no call of a
// tool of ours. mcp-go's tables are the same for all sessions, so hooks replace what it lists by what the caller's
// session has.
package mcpgo
