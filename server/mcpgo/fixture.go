//go:build conformance

package mcpgo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
)

// FailWith answers the request that ctx belongs to with a JSON-RPC error, whatever its handler returns. mcp-go v1.2.1
// lets no handler choose a code (server/handler_errors.go:19).
func FailWith(ctx context.Context, code int, message string, data any) {
	if t := turnFrom(ctx); t != nil {
		t.Failure = &jsonrpc.Error{Code: code, Message: message, Data: data}
	}
}

// The methods that mcp-go asks of a session whose handlers ask for more than the product does.

// GetClientInfo is what the client said it is.
func (c *clientSession) GetClientInfo() mcp.Implementation {
	return mcp.Implementation{Name: c.t.Req.Client.Name, Version: c.t.Req.Client.Version}
}

// SetClientInfo is dropped: Gateway.greet keeps it.
func (c *clientSession) SetClientInfo(mcp.Implementation) {}

// GetClientCapabilities are those that the client declared when it initialized.
func (c *clientSession) GetClientCapabilities() mcp.ClientCapabilities {
	caps, _ := c.t.Req.Client.Capabilities.(mcp.ClientCapabilities)
	return caps
}

// SetClientCapabilities is dropped: Gateway.greet keeps them.
func (c *clientSession) SetClientCapabilities(mcp.ClientCapabilities) {}

// RequestElicitation puts a question to a legacy client.
func (c *clientSession) RequestElicitation(ctx context.Context,
	r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return ask[mcp.ElicitationResult](ctx, c, mcp.MethodElicitationCreate, r.Params)
}

// RequestSampling asks a legacy client for a completion.
func (c *clientSession) RequestSampling(ctx context.Context,
	r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	return ask[mcp.CreateMessageResult](ctx, c, mcp.MethodSamplingCreateMessage, r.CreateMessageParams)
}

// ListRoots asks a legacy client for its roots.
func (c *clientSession) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return ask[mcp.ListRootsResult](ctx, c, mcp.MethodListRoots, nil)
}

func ask[T any](ctx context.Context, c *clientSession, method mcp.MCPMethod, params any) (*T, error) {
	answer, err := c.t.Req.Peer.Call(ctx, string(method), params)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("the client gave no answer")
	}
	result := new(T)
	return result, json.Unmarshal(answer, result)
}
