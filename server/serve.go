package server

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth/limits"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/toolset"
	"codehand/server/waiting"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// A turn is the Turn of one request with what Serve alone keeps of it. It lives as long as its Work and belongs to that
// goroutine.
type turn struct {
	request.Turn
	s       *Server
	target  *toolset.Target // of a call of a tool of ours; else nil
	release func()          // gives state back
	visit   *pipeline.Visit
	waits   *waiting.Call    // of a modern call that may ask its client while it works; else nil
	places  []*limits.Turn   // in the principal's queues, in the order in which they must come
	space   *workspace.Space // of state before any round of the call moved it; nil: none has begun

}

// Serve is request.Serve.
func (s *Server) Serve(r request.Request) (request.Work, bool) {
	t := &turn{s: s, Turn: request.Turn{Req: r}, release: func() {}}
	if r.Client.Modern && waiting.Names(r) {
		return s.team.Observed(r, t.resume), true
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
		return s.team.Observed(r, func(ctx context.Context) request.Answer {
			a := work(ctx)
			// Before that, what waits for the list could overtake it.
			a.Sent = func() { s.notices.Hub.Relisted(r.Session) }
			return a
		}), changes
	}
	if r.Client.Modern && t.target != nil && s.waiting != nil {
		t.waits = s.waiting.Begin(r)
		t.Req.Peer = t.waits
		return s.team.Observed(r, func(ctx context.Context) request.Answer { return t.waits.Run(ctx, work) }), changes
	}
	return s.team.Observed(r, work), changes
}

// arrive finds the target of a call, takes its session, its places in its principal's queues, and its ticket, in this
// order. Another request only takes the session that it needs.
func (t *turn) arrive() *jsonrpc.Error {
	s, env := t.s, t.Req.Envelope
	call := env.Method == string(mcp.MethodToolsCall)
	if call {
		found, ours := s.tools.Get(env.Name)
		if !ours {
			return nil // mcp-go answers it
		}
		to := s.tools.Follow(t.Req.Tenant, found, env.Arguments)
		t.target = &to
	} else if !sessions.Looks(env.Method) {
		return nil
	}
	state, release, err := s.sessions.Acquire(t.Req.Session, t.Req.Tenant)
	if err != nil {
		return s.replies.Internal(context.Background(), "session", err)
	}
	t.State, t.release = state, release
	if !call {
		t.Req.Narrow(state, s.replies.Log)
		return nil
	}
	t.takePlaces()
	return nil
}

// takePlaces takes places in all queues. That is one step: over HTTP several calls arrive at once, and two queues taken
// separately can deadlock, when a call that is first in one is second in the other.
func (t *turn) takePlaces() {
	s := t.s
	s.arrival.Lock()
	defer s.arrival.Unlock()
	t.places = nil
	if l := t.Req.Caller.Limits; l != nil {
		t.places = append(t.places, l.Arrive())
		if t.target.Tool.Spec.Scope == tool.ScopeShell {
			t.places = append(t.places, l.Shell())
		}
	}
	t.visit = s.pipe.Arrive(t.State)
}

// leave gives back all that the turn holds.
func (t *turn) leave() {
	if t.visit != nil {
		t.visit.Leave()
		t.leavePlaces()
	}
	t.release()
}

func (t *turn) leavePlaces() {
	for _, p := range t.places {
		p.Leave()
	}
}

// answer serves the request. It never panics, and an answer that cannot be encoded is an error with a reference.
func (t *turn) answer(ctx context.Context) (a request.Answer) {
	defer func() {
		if p := recover(); p != nil {
			ref := t.s.replies.Report(ctx, "panic", fmt.Errorf("%v", p), debug.Stack())
			a = replies.Failed(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"})
		}
		a.Tool = t.tool()
	}()
	if e := t.s.replies.Unserved(t.Req.Envelope); e != nil {
		return replies.Failed(e)
	}
	switch {
	case t.target != nil:
		return t.call(ctx)
	case t.Req.Client.Modern && t.Req.Method == string(mcp.MethodSubscriptionsListen):
		return t.s.gate.Listen(ctx, &t.Turn)
	}
	return t.s.gate.Dispatch(ctx, &t.Turn)
}

// tool is the tool that a call is for; "": the request is none.
func (t *turn) tool() string {
	if t.target == nil {
		return t.Req.Name
	}
	return t.target.Tool.Spec.Name
}
