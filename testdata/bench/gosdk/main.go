// Command gosdk is the smallest server that the official Go SDK can make: one tool over stdio, or with the argument http
// over Streamable HTTP. Benchmarks measure codehand beside it, so it does nothing of its own.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type pingInput struct {
	Text string `json:"text,omitempty" jsonschema:"returned as it is"`
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "ping", Description: "Returns pong, or the text it is given."}, ping)
	if err := serve(server, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gosdk:", err)
		os.Exit(1)
	}
}

// serve takes the arguments: none, or http, which may be followed by json for answers that are no event streams.
func serve(server *mcp.Server, args []string) error {
	if len(args) == 0 {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{JSONResponse: len(args) > 1 && args[1] == "json"})
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	return http.Serve(l, mux)
}

func ping(_ context.Context, _ *mcp.CallToolRequest, in pingInput) (*mcp.CallToolResult, any, error) {
	text := in.Text
	if text == "" {
		text = "pong"
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}
