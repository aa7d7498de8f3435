// Package server is the gatehouse: the only room that speaks MCP.
//
// Bytes of a client come in through a transport (stdio.go), are scanned once and
// entered in the in-flight table (server/jsonrpc), given a session (sessions.go)
// and dispatched (dispatch.go), by mcp-go but for legacy tool calls. A call leaves
// MCP in calls.go, where it enters the corridor (server/pipeline).
// The way back is describe.go, dispatch.go and the transport's writer.
//
// It owns transports, identity, listing and the making of the engines. It never
// knows what a tool does.
package server
