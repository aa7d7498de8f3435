package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// Call runs one tool in process for a tenant, in the session that keyed finds for its request, with the same checks and
// through the same pipeline as a client's call. It returns what the model would read, however much the calls before it
// showed, and whether that is an error. err is a tool that does not exist, or a fault of ours.
func (h *Handler) Call(ctx context.Context, at *tenants.Tenant, keyed func(jsonrpc.Envelope) (session.Key, error),
	name string, arguments json.RawMessage) (text string, failed bool, err error) {
	quoted, err := jsonrpc.Marshal(name)
	if err != nil {
		return "", false, err
	}
	message := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":%s}}`,
		quoted, arguments)
	env, bad := jsonrpc.Scan(message)
	switch {
	case bad != nil && bad.InArguments:
		return replies.Unusable(env.Name, bad).Error(), true, nil
	case bad != nil:
		return "", false, errors.New(bad.Message)
	}
	if _, ok := h.Tools.Get(env.Name); !ok {
		return "", false, errors.New(h.Tools.Unknown(at.Offers(false).Catalog, env.Name))
	}
	key, err := keyed(env)
	if err != nil {
		return "", false, err
	}
	work, _ := h.Serve(request.Request{
		Envelope: env, Message: message, Tenant: at, Session: key, Peer: noPeer{},
		Client: request.Client{ClientRecord: sessions.ClientRecord{Name: "codehand-call"}, Muted: true},
		Caller: request.Caller{From: pipeline.From{Auth: "none", Transport: pipeline.InProcess}},
	})
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

// noPeer is the other end of a call in process.
type noPeer struct{}

func (noPeer) Notify(string, any) error { return jsonrpc.ErrAnswered }

func (noPeer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (noPeer) Gone() <-chan struct{} { return nil }
