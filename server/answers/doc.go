// Package answers turns the result or the refusal of a call into a result of MCP, and encodes it.
//
// Machine data goes to _meta only. The package knows no request and no tool.
package answers
