package places

import (
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/auth/limits"
	"codehand/server/pipeline"
	"codehand/server/request"
	"codehand/server/tenants"
	"codehand/server/toolset"
	"codehand/tools/session"
	"codehand/tools/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestTake: a command stands among the calls and among the commands of its principal, another call among the calls
// alone; what is given back is free for the next one.
func TestTake(t *testing.T) {
	t.Parallel()
	l := new(limits.Limiters).Of("bo", limits.Quota{ConcurrentCalls: 2, ConcurrentShells: 1}, time.Now)
	turn := &request.Turn{
		Req:   request.Request{Caller: request.Caller{Limits: l}},
		State: &session.State{Key: session.Key{Principal: "bo", Session: "s"}},
	}
	desk := &Desk{Pipe: new(pipeline.Pipeline)}
	run, look := tool.Tool{Spec: tool.Spec{Scope: tool.ScopeShell}}, tool.Tool{Spec: tool.Spec{Scope: tool.ScopeRead}}
	first, second, third := desk.Take(turn, run), desk.Take(turn, look), desk.Take(turn, run)
	if len(first.Queues) != 2 || len(second.Queues) != 1 || len(third.Queues) != 2 {
		t.Fatalf("%d, %d and %d queues, want 2, 1 and 2", len(first.Queues), len(second.Queues), len(third.Queues))
	}
	turns := func(p Places) {
		t.Helper()
		for i, q := range p.Queues {
			if ok, err := q.Wait(t.Context()); !ok || err != nil {
				t.Fatalf("queue %d: %v, %v", i, ok, err)
			}
		}
	}
	turns(first)
	turns(second)
	first.LeaveQueues()
	second.Leave()
	turns(third) // both places of the command are free again
	first.Leave()
	third.Leave()
	third.Leave()

	turn.Req.Caller.Limits = nil // stdio has no quotas
	free := desk.Take(turn, run)
	if len(free.Queues) != 0 || free.Visit == nil {
		t.Errorf("%d queues, visit %v", len(free.Queues), free.Visit)
	}
	free.Leave()
	Places{}.Leave()
}

// TestForbidden: what the token may not do is refused before any turn is waited for.
func TestForbidden(t *testing.T) {
	t.Parallel()
	l := new(limits.Limiters).Of("bo", limits.Quota{ConcurrentCalls: 1}, time.Now)
	full := l.Arrive()
	defer full.Leave()
	waiting := l.Arrive()
	defer waiting.Leave()
	at := &tenants.Tenant{Who: auth.Principal{ID: "bo", Scopes: auth.Read}}
	run := tool.Tool{Spec: tool.Spec{Name: "run", Scope: tool.ScopeShell}}
	p := Places{Queues: []*limits.Turn{waiting}}
	got := p.Admit(t.Context(), &request.Turn{Req: request.Request{Tenant: at}}, &toolset.Target{Tool: run}, false)
	if got.Refused == nil || got.Refused.Code != tool.ScopeMissing {
		t.Errorf("got %+v", got.Refused)
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration][2]string{
		-time.Second:            {"Too many calls. Try again in 1 s.", `{"retryAfterMs":0}`},
		1500 * time.Millisecond: {"Too many calls. Try again in 2 s.", `{"retryAfterMs":1500}`},
	} {
		r := tooManyCalls(after)
		if r.Code != tool.RateLimited || r.Text != want[0] || string(r.Meta.Data) != want[1] {
			t.Errorf("%s: %s, %q, %s", after, r.Code, r.Text, r.Meta.Data)
		}
	}
}
