package server

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"testing"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/replaytest"
	"codehand/server/sessions"
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
	at, err := s.team.tenants.Of(s.localPrincipal())
	must(t, err)
	state, release, err := s.sessions.Acquire(s.names.Key(envelope{}), at)
	must(t, err)
	t.Cleanup(release)
	rec := &record{place: at, limits: limits, state: state}
	find := func(ctx context.Context, name string) (pipeline.Inner, *tool.Refusal, bool) {
		arrived := false
		found, ok := s.inner(rec)(name, func() { arrived = true })
		if ok != arrived {
			t.Errorf("%s: found %v, took its ticket %v", name, ok, arrived)
		}
		if !ok {
			return found, nil, false
		}
		return found, found.Admit(ctx), true
	}

	if _, _, ok := find(t.Context(), "gone"); ok {
		t.Error("a tool that does not exist is found")
	}
	first, refused, ok := find(t.Context(), "run")
	if !ok || refused != nil || first.Tool.Spec.Name != "run" {
		t.Fatalf("got %+v, %v, %v", first, refused, ok)
	}
	// Only one command at a time: another one waits, here until its client has gone.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	second, _, _ := find(gone, "run")
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
	third, _, _ := find(t.Context(), "look")
	third.Leave()
	if _, refused, _ := find(t.Context(), "look"); refused == nil || refused.Code != tool.RateLimited {
		t.Errorf("over the rate of calls: %+v", refused)
	}

	narrow := *at
	narrow.who.Scopes = auth.Read
	rec.place, rec.limits = &narrow, nil
	if _, refused, ok := find(t.Context(), "run"); !ok || refused == nil || refused.Code != tool.ScopeMissing {
		t.Errorf("without the scope: %+v", refused)
	}
	if _, refused, ok := find(t.Context(), "look"); !ok || refused != nil {
		t.Errorf("within it: %+v", refused)
	}
}

// TestInnerOrder: a skill's command that waited for its place, and a run_shell that its session sent meanwhile, waited for
// each other for 10 s: the first was ahead among the commands, the second at the gate. Then that was refused for "too many
// calls".
func TestInnerOrder(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 1)
	outer := fixtureTool("outer", tool.Traits{Private: true, Ungated: true}, func(ctx context.Context, env tool.Env, _ word) (tool.Result, error) {
		entered <- struct{}{}
		return env.Call(ctx, "run", json.RawMessage(`{}`), nil)
	})
	run := fixtureTool("run", tool.Traits{Private: true, Local: true}, func(context.Context, tool.Env, word) (tool.Result, error) {
		return tool.Result{Text: "ran"}, nil
	})
	run.Spec.Scope = tool.ScopeShell
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{outer, run}})
	s := x.server
	who := s.localPrincipal()
	who.ID, who.Quota = "bo", auth.Quota{ConcurrentShells: 1}
	limits := s.team.porter.Limits(who)
	at, err := s.team.tenants.Of(s.localPrincipal())
	must(t, err)
	arrive := func(name string) *record {
		env, bad := jsonrpc.Scan([]byte(replaytest.CallLine(1, name, `{}`, "")))
		if bad != nil {
			t.Fatal(bad.Message)
		}
		key, _ := sessions.HTTPKey(who, env, "handle-one", "")
		rec, release := &record{env: env, place: at, limits: limits}, func() {}
		if e := s.arrive(rec, key, &release); e != nil {
			t.Fatal(e.Message)
		}
		t.Cleanup(release)
		return rec
	}
	var all sync.WaitGroup
	start := func(rec *record) {
		all.Go(func() {
			result := s.run(withRecord(t.Context(), rec), rec)
			rec.visit.Leave()
			if result.IsError {
				t.Errorf("%s: %+v", rec.env.name, result.Content)
			}
		})
	}
	for range 20 {
		other := limits.Shell() // of another session
		start(arrive("outer"))
		<-entered
		for range 100 { // the inner call comes to its queue
			runtime.Gosched()
		}
		start(arrive("run"))
		other.Leave()
		all.Wait()
		if t.Failed() {
			return
		}
	}
}
