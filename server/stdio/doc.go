// Package stdio is MCP over a connection on which all messages come in order: a pair of pipes, or a legacy SSE stream,
// whose endpoint (server/endpoint) hands messages in and writes what comes out.
//
// It reads lines, keeps the order of arrival, and writes answers and notifications whole. It knows no tool and no
// session: the server makes each answer.
package stdio
