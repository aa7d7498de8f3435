// Command gosdk runs the checks with the client of the official Go SDK.
package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codehand/testdata/clients/checks"
)

func main() { checks.Main(connect) }

type client struct {
	session *mcp.ClientSession
	notes   *notes
}

// bearer adds the token to each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func connect(ctx context.Context, o checks.Options) (checks.Client, error) {
	c := &client{notes: &notes{to: map[any]func(checks.Progress){}}}
	sdk := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1.8.0"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			action, content := checks.Elicit(req.Params.Message)
			return &mcp.ElicitResult{Action: action, Content: content}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.notes.deliver(req.Params.ProgressToken, checks.Progress{Done: req.Params.Progress, Message: req.Params.Message})
		},
	})
	web := &http.Client{Transport: bearer{o.Token}}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: o.URL, HTTPClient: web}
	if o.Transport == "sse" {
		transport = &mcp.SSEClientTransport{Endpoint: o.URL, HTTPClient: web}
	}
	version := "2025-11-25"
	if o.Era == "modern" {
		version = "2026-07-28"
	}
	session, err := sdk.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		return nil, err
	}
	if got := session.InitializeResult().ProtocolVersion; got != version {
		return nil, errors.New("the version is " + got)
	}
	c.session = session
	return c, nil
}

func (c *client) Server() string { return c.session.InitializeResult().ServerInfo.Name }

func (c *client) Tools(ctx context.Context) ([]string, error) {
	var names []string
	for t, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	return names, nil
}

func (c *client) Call(ctx context.Context, tool string, arguments, meta map[string]any, note func(checks.Progress)) (checks.Result, error) {
	p := &mcp.CallToolParams{Name: tool, Arguments: arguments, Meta: mcp.Meta{}}
	for k, v := range meta {
		p.Meta[k] = v
	}
	if note != nil {
		p.SetProgressToken(c.notes.add(note))
	}
	res, err := c.session.CallTool(ctx, p)
	if err != nil {
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
			err = &checks.CodeError{Code: wire.Code, Err: err}
		}
		return checks.Result{}, err
	}
	out := checks.Result{IsError: res.IsError, Meta: res.Meta}
	for _, block := range res.Content {
		if t, ok := block.(*mcp.TextContent); ok {
			out.Text += t.Text
		}
	}
	return out, nil
}

func (c *client) Cancels() bool { return true }

func (c *client) Close() error { return c.session.Close() }
