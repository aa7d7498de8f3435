// Package replies makes the answers that neither a tool nor mcp-go makes: refusals before a call begins, internal
// errors, and what is sent in place of a result that does not fit the wire.
package replies

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/answers"
	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/tools/tool"
)

// Replies makes such answers. It does not change and is safe for concurrent use.
type Replies struct {
	Protocol
	Log *slog.Logger
}

// Failed is an answer that is an error.
func Failed(e *jsonrpc.Error) request.Answer {
	return request.Answer{Err: e, Failed: strconv.Itoa(e.Code)}
}

// Refuse answers a call that never begins: its arguments are not usable, or too many are in flight. It is for
// transports; env need not be whole.
func (r Replies) Refuse(env jsonrpc.Envelope, modern bool, err error) request.Answer {
	result := answers.Refusal(err, env.Name)
	answers.Decorate(result, modern, r.Implementation)
	return r.Finish(context.Background(), env, modern, result)
}

// Finish encodes the result of a call. One that does not fit the wire becomes a refusal; results are cut long before,
// so this is the backstop.
func (r Replies) Finish(ctx context.Context, env jsonrpc.Envelope, modern bool,
	result *mcp.CallToolResult) request.Answer {
	body, err := answers.Encode(result)
	if err != nil {
		ref := r.Report(ctx, "encode", err, nil)
		return Failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded (ref " + ref +
			")"})
	}
	a := request.Answer{Result: body}
	if result.IsError {
		a.Failed = "tool_error"
	}
	if n := len(body) + len(env.ID); n >= jsonrpc.MaxResponse-answerFrame {
		result = answers.Refusal(&tool.Refusal{
			Code: tool.ResultTooLarge,
			Text: fmt.Sprintf("The result is larger than the wire allows (%d bytes, limit 8 MiB). "+
				"Ask for less: a smaller range, a narrower pattern.", n),
		}, env.Name)
		answers.Decorate(result, modern, r.Implementation)
		if a.Result, err = answers.Encode(result); err != nil {
			return Failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded"})
		}
		a.Failed = "tool_error"
	}
	return a
}

// Result encodes the result of a request that is no call; id is that of the request.
func (r Replies) Result(ctx context.Context, id json.RawMessage, result any) request.Answer {
	body, err := jsonrpc.Marshal(result)
	if err != nil {
		ref := r.Report(ctx, "encode", err, nil)
		return Failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded (ref " + ref +
			")"})
	}
	if n := len(body) + len(id); n >= jsonrpc.MaxResponse-answerFrame {
		return Failed(&jsonrpc.Error{
			Code: mcp.INTERNAL_ERROR,
			Message: fmt.Sprintf("the answer is larger than the wire allows (%d bytes, limit %d)", n,
				jsonrpc.MaxResponse),
		})
	}
	return request.Answer{Result: body}
}

// Question makes the answer that asks the client of a call that waits. asked are the questions, by name.
func (r Replies) Question(asked any, state string) request.Answer {
	body, err := answers.Question(asked, state, r.Implementation)
	if err != nil {
		return Failed(r.Internal(context.Background(), "question", err))
	}
	return request.Answer{Result: body}
}

// answerFrame is what an answer has besides its result and its id, in bytes.
const answerFrame = len(`{"jsonrpc":"2.0","id":,"result":}`) + len("\n")

// Internal is the answer to a request that failed for a reason of ours.
func (r Replies) Internal(ctx context.Context, where string, err error) *jsonrpc.Error {
	return &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + r.Report(ctx, where, err, nil) +
		")"}
}

// Report logs what went wrong inside and returns the reference under which it is found. Nothing else of it leaves.
func (r Replies) Report(ctx context.Context, where string, err error, stack []byte) string {
	ref := rand.Text()[:8]
	attrs := []any{slog.String("ref", ref), slog.String("where", where), slog.Any("err", err)}
	if stack != nil {
		attrs = append(attrs, slog.String("stack", string(stack)))
	}
	r.Log.ErrorContext(ctx, "internal error", attrs...)
	return ref
}

// Unusable is the refusal for arguments that the model wrote and that no parser should guess about.
func Unusable(name string, bad *jsonrpc.Fault) error {
	return tool.Refuse(tool.InputInvalid, "Input validation failed for %s:\n- the arguments are not usable JSON: %s",
		name, bad.Message)
}

// tooMany is the refusal of a call on a connection that has as many as it may.
func tooMany() error {
	return tool.Refuse(tool.Busy,
		"%d calls are in flight on this connection. Nothing was done. Try again when some are answered.",
		jsonrpc.MaxInFlight)
}

// Refusals makes the lines by which a bridge refuses calls itself, as a server of this version does: bad says what is
// wrong with the arguments; nil: too many calls are in flight. The function is safe for concurrent use.
func Refusals(version string) func(env jsonrpc.Envelope, bad *jsonrpc.Fault) []byte {
	r := Replies{
		Log:      slog.New(slog.DiscardHandler),
		Protocol: Protocol{Implementation: mcp.Implementation{Name: "codehand", Version: version}},
	}
	return func(env jsonrpc.Envelope, bad *jsonrpc.Fault) []byte {
		refusal := tooMany()
		if bad != nil {
			refusal = Unusable(env.Name, bad)
		}
		return r.Refuse(env, env.Modern(), refusal).Line(env.ID)
	}
}
