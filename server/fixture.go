//go:build conformance

package server

import (
	"context"
	"errors"

	"codehand/server/jsonrpc"
)

// Notify sends a notification of the request that ctx belongs to, on that request's own stream. It is what handlers of
// the conformance fixture have instead of the Env of a tool: when it returns nil, the bytes left before the answer.
// The error says that nothing was sent, because the request may not stream or was answered.
func Notify(ctx context.Context, method string, params map[string]any) error {
	rec := recordFrom(ctx)
	if rec == nil || rec.notify == nil {
		return errors.New("this request has no notifier")
	}
	return rec.notify(method, params)
}

// FailWith answers the request that ctx belongs to with a JSON-RPC error, whatever its handler returns. mcp-go v1.2.1
// lets no handler choose a code (server/handler_errors.go:19).
func FailWith(ctx context.Context, code int, message string, data any) {
	if rec := recordFrom(ctx); rec != nil {
		rec.override = &jsonrpc.Error{Code: code, Message: message, Data: data}
	}
}
