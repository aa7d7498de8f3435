// Package answers is what calls gave back as clients read it: a result or a refusal as MCP shows it, and its bytes.
//
// Machine data goes to _meta only. The package knows no request and no tool.
package answers
