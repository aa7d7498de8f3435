package calls

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/places"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/toolset"
	"codehand/server/waiting"
	"codehand/tools/workspace"
)

// A turn is the Turn of one request with what Serve alone keeps of it. It lives as long as its Work and belongs to that
// goroutine.
type turn struct {
	request.Turn
	h       *Handler
	target  *toolset.Target // of a call of a tool of ours; else nil
	release func()          // gives state back
	waits   *waiting.Call   // of a modern call that may ask its client while it works; else nil
	places  places.Places
	space   *workspace.Space // of state before any round of the call moved it; nil: none has begun
}

// Serve is request.Serve.
func (h *Handler) Serve(r request.Request) (request.Work, bool) {
	t := &turn{h: h, Turn: request.Turn{Req: r}, release: func() {}}
	if r.Client.Modern && waiting.Names(r) {
		return h.Observed(r, t.resume), true
	}
	err := t.arrive()
	changes := t.target != nil && !t.target.Tool.Spec.Traits.ReadOnly
	work := func(ctx context.Context) request.Answer {
		defer t.leave()
		if err != nil {
			return replies.Failed(err)
		}
		return t.answer(ctx)
	}
	if r.Method == string(mcp.MethodToolsList) {
		return h.Observed(r, func(ctx context.Context) request.Answer {
			a := work(ctx)
			// Before that, what waits for the list could overtake it.
			a.Sent = func() { h.Notices.Hub.Relisted(r.Session) }
			return a
		}), changes
	}
	if r.Client.Modern && t.target != nil && h.Waiting != nil {
		t.waits = h.Waiting.Begin(r)
		t.Req.Peer = t.waits
		return h.Observed(r, func(ctx context.Context) request.Answer { return t.waits.Run(ctx, work) }), changes
	}
	return h.Observed(r, work), changes
}

// arrive finds the target of a call, takes its session, its places in its principal's queues, and its ticket, in this
// order. Another request only takes the session that it needs.
func (t *turn) arrive() *jsonrpc.Error {
	h, env := t.h, t.Req.Envelope
	call := env.Method == string(mcp.MethodToolsCall)
	if call {
		found, ours := h.Tools.Get(env.Name)
		if !ours {
			return nil // mcp-go answers it
		}
		to := h.Tools.Follow(t.Req.Tenant, found, env.Arguments)
		t.target = &to
	} else if !sessions.Looks(env.Method) {
		return nil
	}
	state, release, err := h.Sessions.Acquire(t.Req.Session, t.Req.Tenant)
	if err != nil {
		return h.Replies.Internal(context.Background(), "session", err)
	}
	t.State, t.release = state, release
	if !call {
		t.Req.Narrow(state, h.Replies.Log)
		return nil
	}
	t.takePlaces()
	return nil
}

// takePlaces takes the places that the call needs.
func (t *turn) takePlaces() { t.places = t.h.Places.Take(&t.Turn, t.target.Tool) }

// leave gives back all that the turn holds.
func (t *turn) leave() {
	t.places.Leave()
	t.release()
}

// answer serves the request. It never panics, and an answer that cannot be encoded is an error with a reference.
func (t *turn) answer(ctx context.Context) (a request.Answer) {
	defer func() {
		if p := recover(); p != nil {
			ref := t.h.Replies.Report(ctx, "panic", fmt.Errorf("%v", p), debug.Stack())
			a = replies.Failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"})
		}
		a.Tool = t.tool()
	}()
	if e := t.h.Replies.Unserved(t.Req.Envelope); e != nil {
		return replies.Failed(e)
	}
	if e := t.shut(ctx); e != nil {
		return replies.Failed(e)
	}
	switch {
	case t.target != nil:
		return t.call(ctx)
	case t.Req.Client.Modern && t.Req.Method == string(mcp.MethodSubscriptionsListen):
		return t.h.Gate.Listen(ctx, &t.Turn)
	}
	return t.h.Gate.Dispatch(ctx, &t.Turn)
}

// tool is the tool that a call is for; "": the request is none.
func (t *turn) tool() string {
	if t.target == nil {
		return t.Req.Name
	}
	return t.target.Tool.Spec.Name
}
