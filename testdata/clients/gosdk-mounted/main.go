// Command gosdk-mounted is a server of the official Go SDK that tests mount, over stdio, or with the argument http over
// Streamable HTTP, where requests need the bearer token of the variable TOKEN and the address is the first line of the
// output. Its tools return what such servers do: text, structured content, an error, an image, a link, an answer of the
// person, progress.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gosdk-mounted:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	server := mcp.NewServer(&mcp.Implementation{Name: "gosdk-mounted", Version: "1"}, nil)
	add(server)
	if len(args) == 0 {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if token != os.Getenv("TOKEN") || token == "" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "tester", Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	return http.Serve(l, mux)
}

type sayInput struct {
	Text string `json:"text" jsonschema:"returned as it is"`
}

type sumInput struct {
	First  int `json:"first" jsonschema:"a number"`
	Second int `json:"second" jsonschema:"another one"`
}

type sumOutput struct {
	Sum int `json:"sum"`
}

func add(server *mcp.Server) {
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	mcp.AddTool(server, &mcp.Tool{Name: "say", Description: "Returns a text as it is given."},
		func(_ context.Context, _ *mcp.CallToolRequest, in sayInput) (*mcp.CallToolResult, any, error) {
			return text("said " + in.Text), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "sum", Description: "Adds two numbers and returns an object."},
		func(_ context.Context, _ *mcp.CallToolRequest, in sumInput) (*mcp.CallToolResult, sumOutput, error) {
			return nil, sumOutput{in.First + in.Second}, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "fail", Description: "Always fails with a reason."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("there is no such ticket")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "picture", Description: "Draws an image, with a link to a resource."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.ImageContent{MIMEType: "image/png", Data: []byte("no image")},
				&mcp.ResourceLink{URI: "demo://picture", Name: "the picture"},
			}}, nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "slow_steps", Description: "Works in steps and reports its progress."},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			for i := range 3 {
				if token := r.Params.GetProgressToken(); token != nil {
					if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
						ProgressToken: token, Progress: float64(i + 1), Total: 3, Message: "a step",
					}); err != nil {
						return nil, nil, err
					}
				}
			}
			return text("three steps"), nil, nil
		})
	server.AddResource(&mcp.Resource{URI: "demo://picture", Name: "the picture", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "demo://picture", Text: "a picture of a hand"}}}, nil
		})
}
