// Command mcpgo runs the checks with the client of mcp-go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"codehand/testdata/clients/checks"
)

func main() { checks.Main(connect) }

type caller struct {
	client *client.Client
	server string
	mute   bool // it answers no questions

	mu sync.Mutex
	to map[string]func(checks.Progress) // by token
}

// Mute says that this client answers no questions.
func (c *caller) Mute() bool { return c.mute }

// user answers questions.
type user struct{}

func (user) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	action, content := checks.Elicit(req.Params.Message)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseAction(action), Content: content}}, nil
}

func connect(ctx context.Context, o checks.Options) (checks.Client, error) {
	headers := map[string]string{}
	if o.Token != "" {
		headers["Authorization"] = "Bearer " + o.Token
	}
	var t transport.Interface
	var err error
	switch {
	case o.Transport == "sse":
		t, err = transport.NewSSE(o.URL, transport.WithHeaders(headers))
	case o.Era == "legacy": // the GET stream is not open unless one asks, and modern has none
		t, err = transport.NewStreamableHTTP(o.URL, transport.WithHTTPHeaders(headers), transport.WithContinuousListening())
	default:
		t, err = transport.NewStreamableHTTP(o.URL, transport.WithHTTPHeaders(headers))
	}
	if err != nil {
		return nil, err
	}
	var options []client.ClientOption
	if o.Transport != "sse" { // where this library takes no requests of a server
		options = append(options, client.WithElicitationHandler(user{}))
	}
	if o.Era == "legacy" {
		options = append(options, client.WithLegacyProtocolOnly())
	}
	c := &caller{
		client: client.NewClient(t, options...), mute: o.Transport == "sse", to: map[string]func(checks.Progress){},
	}
	c.client.OnNotification(c.deliver)
	if err := c.client.Start(ctx); err != nil {
		return nil, err
	}
	var req mcp.InitializeRequest
	req.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1.2.1"}
	req.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	result, err := c.client.Initialize(ctx, req)
	if err != nil {
		return nil, err
	}
	if modern := mcp.IsModernProtocol(c.client.ProtocolVersion()); modern != (o.Era == "modern") {
		return nil, errors.New("the version is " + c.client.ProtocolVersion())
	}
	c.server = result.ServerInfo.Name
	return c, nil
}

func (c *caller) Server() string { return c.server }

func (c *caller) Tools(ctx context.Context) ([]string, error) {
	result, err := c.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range result.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

func (c *caller) Call(ctx context.Context, tool string, arguments, meta map[string]any, note func(checks.Progress)) (checks.Result, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, arguments
	req.Params.Meta = &mcp.Meta{AdditionalFields: meta}
	if note != nil {
		req.Params.Meta.ProgressToken = c.add(note)
	}
	res, err := c.client.CallTool(ctx, req)
	if err != nil {
		return checks.Result{}, coded(err)
	}
	out := checks.Result{IsError: res.IsError}
	if res.Meta != nil {
		out.Meta = res.Meta.AdditionalFields
	}
	for _, block := range res.Content {
		if t, ok := block.(mcp.TextContent); ok {
			out.Text += t.Text
		}
	}
	return out, nil
}

// coded gives an error its code back, which the client turns into a type. Others are not looked at.
func coded(err error) error {
	if mcp.IsMissingRequiredClientCapability(err) {
		return &checks.CodeError{Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Err: err}
	}
	return err
}

// Cancels is true where ending the request's stream is the cancel. In the earlier protocols mcp-go v1.2.1 tells the
// server nothing over HTTP (client/client.go:304): on /mcp it ends the stream, on /sse not even that.
func (c *caller) Cancels() bool { return mcp.IsModernProtocol(c.client.ProtocolVersion()) }

func (c *caller) Close() error { return c.client.Close() }

// add returns the token for a call.
func (c *caller) add(note func(checks.Progress)) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	token := "call-" + strconv.Itoa(len(c.to))
	c.to[token] = note
	return token
}

// deliver brings progress to the call that wants it.
func (c *caller) deliver(n mcp.JSONRPCNotification) {
	if n.Method != "notifications/progress" {
		return
	}
	var p struct {
		ProgressToken string
		Progress      float64
		Message       string
	}
	data, err := json.Marshal(n.Params)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return
	}
	c.mu.Lock()
	note := c.to[p.ProgressToken]
	c.mu.Unlock()
	if note != nil {
		note(checks.Progress{Done: p.Progress, Message: p.Message})
	}
}
