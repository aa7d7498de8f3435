// Package server is one process of codehand: it makes the rooms that serve requests, over the engines of
// server/engines, and ends them.
//
// Transports (server/stdio, server/endpoint) pass requests to server/calls. A call of one of our tools goes to
// server/pipeline and never enters mcp-go; every other request enters mcp-go in one place, the gateway. The packages
// below server make the lists, ask questions, read resources and write the audit.
//
// It never knows what a tool does.
package server
