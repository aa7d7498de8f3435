package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Call runs one tool in process for a tenant, in the session that keyed finds for its request, with the same checks and
// through the same pipeline as a client's call. It returns what the model would read, however much the calls before it
// showed, and whether that is an error. err is a tool that does not exist, or a fault of ours.
func (h *Handler) Call(ctx context.Context, at *tenants.Tenant, keyed func(jsonrpc.Envelope) (session.Key, error),
	name string, arguments json.RawMessage) (text string, failed bool, err error) {
	env, message, err := toolsCall(name, arguments)
	if bad, ok := errors.AsType[*tool.Refusal](err); ok {
		return bad.Error(), true, nil
	}
	if err != nil {
		return "", false, err
	}
	if _, ok := h.Tools.Get(env.Name); !ok {
		return "", false, errors.New(h.Tools.Unknown(at.Offers(false).Catalog, env.Name))
	}
	key, err := keyed(env)
	if err != nil {
		return "", false, err
	}
	return h.inProcess(ctx, request.Request{
		Envelope: env, Message: message, Tenant: at, Session: key, Peer: noPeer{},
		Client: request.Client{ClientRecord: sessions.ClientRecord{Name: "codehand-call"}, Muted: true},
		Caller: request.Caller{From: pipeline.From{Auth: "none", Transport: pipeline.InProcess}},
	})
}

// ByPerson is Call for a person who clicked on the page of serve: where a person must allow the call, that click does.
// What a rule or a mode denies is denied.
func (h *Handler) ByPerson(ctx context.Context, at *tenants.Tenant, name string,
	arguments json.RawMessage) (text string, failed bool, err error) {
	env, message, err := toolsCall(name, arguments)
	if err != nil {
		return "", false, err
	}
	return h.inProcess(ctx, request.Request{
		Envelope: env, Message: message, Tenant: at, Peer: clicked{},
		Session: session.Key{Principal: at.Who.ID, Session: sessions.Page},
		Client:  request.Client{ClientRecord: sessions.ClientRecord{Name: "codehand-page", CanAsk: true}},
		Caller:  request.Caller{From: pipeline.From{Auth: "page", Transport: pipeline.InProcess}},
	})
}

// inProcess serves a call, and returns what a model would read.
func (h *Handler) inProcess(ctx context.Context, r request.Request) (text string, failed bool, err error) {
	work, _ := h.Serve(r)
	a := work(ctx)
	if a.Err != nil {
		return "", false, errors.New(a.Err.Message)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(a.Result, &result); err != nil {
		return "", false, err
	}
	for _, c := range result.Content {
		text += c.Text
	}
	return text, result.IsError, nil
}

// toolsCall is the request for a call. A *tool.Refusal says that the arguments cannot be read.
func toolsCall(name string, arguments json.RawMessage) (env jsonrpc.Envelope, message []byte, err error) {
	quoted, err := jsonrpc.Marshal(name)
	if err != nil {
		return env, nil, err
	}
	message = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":%s}}`,
		quoted, arguments)
	env, bad := jsonrpc.Scan(message)
	switch {
	case bad != nil && bad.InArguments:
		return env, nil, replies.Unusable(env.Name, bad)
	case bad != nil:
		return env, nil, errors.New(bad.Message)
	}
	return env, message, nil
}

// clicked is the other end of a call that a person made by a click, which answers for it.
type clicked struct{ noPeer }

func (clicked) Call(_ context.Context, method string, _ any) (json.RawMessage, error) {
	if method != string(mcp.MethodElicitationCreate) {
		return nil, jsonrpc.ErrNoCalls
	}
	return json.RawMessage(`{"action":"accept","content":{"decision":"allow once"}}`), nil
}

// noPeer is the other end of a call in process.
type noPeer struct{}

func (noPeer) Notify(string, any) error { return jsonrpc.ErrAnswered }

func (noPeer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (noPeer) Gone() <-chan struct{} { return nil }
