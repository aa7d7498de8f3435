// Package server is one process of codehand: it makes the engines, and leads each request from its arrival to its
// answer.
//
// Transports (server/stdio, server/endpoint) hand requests to Serve. A call of a tool of ours goes to the corridor
// (server/pipeline) and never enters mcp-go; everything else enters it in one place, the gateway. What is listed,
// asked, read and recorded is in the rooms below.
//
// It never knows what a tool does.
package server
