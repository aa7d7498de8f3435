package server

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"

	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/team"
	"codehand/tools/session"
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
	who := team.LocalPrincipal(s.cfg)
	who.ID, who.Quota = "bo", limits.Quota{ConcurrentShells: 1, CallsPerMinute: 3, Burst: 3}
	limits := s.team.Porter.Limits(who)
	at, err := s.team.Tenants.Of(team.LocalPrincipal(s.cfg))
	must(t, err)
	state, release, err := s.sessions.Acquire(session.Key{Principal: who.ID, Session: "h:handle-one"}, at)
	must(t, err)
	t.Cleanup(release)
	outer := &request.Turn{Req: request.Request{Tenant: at, Caller: request.Caller{Limits: limits}}, State: state}
	find := func(ctx context.Context, name string) (pipeline.Inner, *tool.Refusal, bool) {
		arrived := false
		found, ok := s.calls.Places.Inner(outer, name, func() { arrived = true })
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
	narrow.Who.Scopes = auth.Read
	outer.Req.Tenant, outer.Req.Caller.Limits = &narrow, nil
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
	who := team.LocalPrincipal(s.cfg)
	who.ID, who.Quota = "bo", limits.Quota{ConcurrentShells: 1}
	limits := s.team.Porter.Limits(who)
	at, err := s.team.Tenants.Of(team.LocalPrincipal(s.cfg))
	must(t, err)
	arrive := func(name string) request.Work {
		message := []byte(replaytest.CallLine(1, name, `{}`, ""))
		env, bad := jsonrpc.Scan(message)
		if bad != nil {
			t.Fatal(bad.Message)
		}
		key, err := sessions.HTTPKey(who, env, "handle-one", "")
		must(t, err)
		work, _ := s.calls.Serve(request.Request{
			Envelope: env, Message: message, Tenant: at, Session: key, Peer: noPeer{}, Caller: request.Caller{Limits: limits},
		})
		return work
	}
	var all sync.WaitGroup
	start := func(work request.Work) {
		all.Go(func() {
			if a := work(t.Context()); a.Err != nil || !strings.Contains(string(a.Result), "ran") {
				t.Errorf("%s: %s, %v", a.Tool, a.Result, a.Err)
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
