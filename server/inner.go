package server

import (
	"context"
	"time"

	"codehand/server/pipeline"
	"codehand/tools/tool"
)

// inner finds tools for calls that a call makes: those of its principal, under its scopes and quotas. A foreground command
// waits for its turn among those of the principal; the place among his calls is that of the outer one.
func (s *Server) inner(rec *record) func(context.Context, string) (pipeline.Inner, bool) {
	return func(ctx context.Context, name string) (pipeline.Inner, bool) {
		t, ok := s.table[name]
		if !ok || t.Dispatches() { // who names a tool needs none that finds it
			return pipeline.Inner{}, false
		}
		found := pipeline.Inner{Tool: t, Refused: rec.place.forbids(t), Leave: func() {}}
		if l := rec.limits; l != nil && found.Refused == nil {
			if t.Spec.Scope == tool.ScopeShell {
				turn := l.Shell()
				found.Leave = turn.Leave
				if ok, err := turn.Wait(ctx); err == nil && !ok {
					found.Refused = tooManyCalls(time.Second)
					return found, true
				}
			}
			if after, ok := l.Call(); !ok {
				found.Refused = tooManyCalls(after)
			}
		}
		give := found.Leave
		found.Leave = func() {
			give()
			s.engines.keeps.kept(rec.state.Results.Dir()) // it may have kept an output
		}
		return found, true
	}
}
