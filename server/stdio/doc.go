// Package stdio is MCP over a connection on which all messages arrive in order: a pair of pipes, or a legacy SSE
// stream. For SSE, server/endpoint passes the messages in and writes the output to the stream.
//
// It reads lines, keeps the order of arrival, and writes answers and notifications whole. It knows no tool and no
// session: the server makes each answer.
package stdio
