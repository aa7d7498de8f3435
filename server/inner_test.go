package server

import (
	"context"
	"testing"

	"codehand/server/auth"
	"codehand/tools/tool"
)

// TestInnerTools: a call finds the tools of its principal, under his scopes and quotas.
func TestInnerTools(t *testing.T) {
	t.Parallel()
	run := fixtureTool("run", tool.Traits{}, func(context.Context, tool.Env, word) (tool.Result, error) { return tool.Result{}, nil })
	run.Spec.Scope = tool.ScopeShell
	look := fixtureTool("look", tool.Traits{ReadOnly: true}, func(context.Context, tool.Env, word) (tool.Result, error) { return tool.Result{}, nil })
	look.Spec.Scope = tool.ScopeRead
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{run, look}})
	s := x.server
	who := s.localPrincipal()
	who.ID, who.Quota = "bo", auth.Quota{ConcurrentShells: 1, CallsPerMinute: 3, Burst: 3}
	limits := s.team.porter.Limits(who)
	at, err := s.team.places.of(s.localPrincipal())
	must(t, err)
	state, release, err := s.sessions.acquire(s.stdioKey(envelope{}), at)
	must(t, err)
	t.Cleanup(release)
	rec := &record{place: at, limits: limits, state: state}
	find := s.inner(rec)

	if _, ok := find(t.Context(), "gone"); ok {
		t.Error("a tool that does not exist is found")
	}
	first, ok := find(t.Context(), "run")
	if !ok || first.Refused != nil || first.Tool.Spec.Name != "run" {
		t.Fatalf("got %+v, %v", first, ok)
	}
	// Only one command at a time: another one waits, here until its client has gone.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	second, _ := find(gone, "run")
	second.Leave()
	waiting := limits.Shell()
	if ok, _ := waiting.Wait(gone); ok {
		t.Error("two commands run at once")
	}
	waiting.Leave()
	first.Leave()
	turn := limits.Shell()
	if ok, err := turn.Wait(t.Context()); !ok || err != nil {
		t.Errorf("the place was not given back: %v", err)
	}
	turn.Leave()
	third, _ := find(t.Context(), "look")
	third.Leave()
	if over, _ := find(t.Context(), "look"); over.Refused == nil || over.Refused.Code != tool.RateLimited {
		t.Errorf("over the rate of calls: %+v", over.Refused)
	}

	narrow := *at
	narrow.who.Scopes = auth.Read
	rec.place, rec.limits = &narrow, nil
	if denied, ok := find(t.Context(), "run"); !ok || denied.Refused == nil || denied.Refused.Code != tool.ScopeMissing {
		t.Errorf("without the scope: %+v", denied.Refused)
	}
	if found, ok := find(t.Context(), "look"); !ok || found.Refused != nil {
		t.Errorf("within it: %+v", found.Refused)
	}
}
