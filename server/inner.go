package server

import (
	"context"
	"time"

	"codehand/server/auth"
	"codehand/server/pipeline"
	"codehand/tools/tool"
)

// inner finds tools for calls that a call makes: those of its principal, under its scopes and quotas. A foreground command
// waits for its turn among those of the principal; the place among his calls is that of the outer one.
func (s *Server) inner(rec *record) func(string, func()) (pipeline.Inner, bool) {
	return func(name string, arrive func()) (pipeline.Inner, bool) {
		t, ok := s.table[name]
		if !ok || t.Dispatches() { // who names a tool needs none that finds it
			return pipeline.Inner{}, false
		}
		var turn *auth.Turn
		s.arrival.Lock()
		if rec.limits != nil && t.Spec.Scope == tool.ScopeShell {
			turn = rec.limits.Shell()
		}
		arrive()
		s.arrival.Unlock()
		leave := func() {
			if turn != nil {
				turn.Leave()
			}
			s.engines.keeps.kept(rec.state.Results.Dir()) // it may have kept an output
		}
		return pipeline.Inner{Tool: t, Admit: func(ctx context.Context) *tool.Refusal { return rec.admitInner(ctx, t, turn) }, Leave: leave}, true
	}
}

// admitInner is admit for a call that this one makes. turn is its place among the commands; nil: it needs none.
func (r *record) admitInner(ctx context.Context, t tool.Tool, turn *auth.Turn) *tool.Refusal {
	if refusal := r.place.forbids(t); refusal != nil || r.limits == nil {
		return refusal
	}
	if turn != nil {
		if ok, err := turn.Wait(ctx); err == nil && !ok {
			return tooManyCalls(time.Second)
		}
	}
	if after, ok := r.limits.Call(); !ok {
		return tooManyCalls(after)
	}
	return nil
}
