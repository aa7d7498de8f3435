// Command gosdk is the smallest server that the official Go SDK can make: one tool over stdio. Benchmarks measure
// codehand beside it, so it does nothing of its own.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type pingInput struct {
	Text string `json:"text,omitempty" jsonschema:"returned as it is"`
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "ping", Description: "Returns pong, or the text it is given."}, ping)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, "gosdk:", err)
		os.Exit(1)
	}
}

func ping(_ context.Context, _ *mcp.CallToolRequest, in pingInput) (*mcp.CallToolResult, any, error) {
	text := in.Text
	if text == "" {
		text = "pong"
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}
