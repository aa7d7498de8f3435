package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// caller is a tool that calls another, and gives back what it said.
func caller(traits tool.Traits, name string, loan *tool.Loan) tool.Tool {
	return fixture("outer", traits, func(ctx context.Context, env tool.Env) (tool.Result, error) {
		if env.Call == nil {
			return tool.Result{Text: "it may make no calls"}, nil
		}
		return env.Call(ctx, name, json.RawMessage(`{"x":1}`), loan)
	})
}

// finds lets calls find these tools.
func finds(tools ...tool.Tool) func(string, func()) (Inner, bool) {
	return func(name string, arrive func()) (Inner, bool) {
		for _, t := range tools {
			if t.Spec.Name == name {
				arrive()
				return admitted(t), true
			}
		}
		return Inner{}, false
	}
}

// admitted is a tool that a call finds and may call.
func admitted(t tool.Tool) Inner {
	return Inner{Tool: t, Admit: func(context.Context) *tool.Refusal { return nil }, Leave: func() {}}
}

var quiet = tool.Traits{Private: true, Ungated: true}

// TestInner: a call from within walks the whole pipeline: it has a turn, a decision, hooks and a record of its own.
func TestInner(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	l := &listener{}
	l.listen(p)
	var told []string
	p.Hooks = &fakeHooks{before: func(_ context.Context, e hooks.Event) (hooks.Outcome, error) {
		told = append(told, e.Tool)
		return hooks.Outcome{}, nil
	}}
	var notes []string
	inner := fixture("inner", reads, func(_ context.Context, env tool.Env) (tool.Result, error) {
		if env.Call != nil {
			t.Error("a call from within may make calls itself")
		}
		env.Progress(1, 2, "inside")
		return tool.Result{Text: "from " + env.Key.Session}, nil
	})
	a := Arrival{Find: finds(inner), Progress: func(_, _ float64, n string) { notes = append(notes, n) }, From: From{Transport: "stdio"}, Via: "Outer"}
	r, err := p.run(t, s, caller(quiet, "inner", nil), `{}`, a)
	if err != nil || r.Text != "from s" {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	if !slices.Equal(told, []string{"outer", "inner"}) || !slices.Equal(notes, []string{"inside"}) {
		t.Errorf("hooks were told of %q, and the client %q", told, notes)
	}
	var got []string
	for _, rec := range l.records {
		if !rec.Started {
			got = append(got, rec.Tool+" via "+rec.Via+" by "+rec.From.Transport+" "+rec.Code)
		}
	}
	if want := []string{"inner via outer by stdio ok", "outer via Outer by stdio ok"}; !slices.Equal(got, want) {
		t.Errorf("records %q, want %q", got, want)
	}
	if !p.gates.idle() {
		t.Error("a gate is left")
	}
}

// TestInnerNeedsAnUngatedCall: a call that holds a turn would wait for itself.
func TestInnerNeedsAnUngatedCall(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	r, err := p.run(t, s, caller(tool.Traits{Private: true}, "inner", nil), `{}`, Arrival{Find: finds(fixture("inner", reads, done))})
	if err != nil || r.Text != "it may make no calls" {
		t.Errorf("got %q, %v", r.Text, err)
	}
	_, err = p.run(t, s, caller(quiet, "gone", nil), `{}`, Arrival{Find: finds()})
	if _, internal := errors.AsType[*InternalError](err); !internal {
		t.Errorf("a tool that there is not gives %v", err)
	}
}

// TestInnerAsksNobody: what the mode asks about is refused, even if a person could be asked; the client's own dialog
// showed the outer call.
func TestInnerAsksNobody(t *testing.T) {
	t.Parallel()
	for _, fallback := range []string{AskClient, "deny"} {
		p, s := newCorridor(), newState(t, "s")
		p.AskFallback = fallback
		s.Client.CanAsk = true
		p.Ask = func(context.Context, Asking) (tool.Answer, error) {
			t.Error("somebody was asked")
			return tool.Answer{Outcome: tool.Accepted, Values: map[string][]string{decisionField: {allowOnce}}}, nil
		}
		ran := false
		inner := fixture("inner", writes, func(context.Context, tool.Env) (tool.Result, error) { ran = true; return tool.Result{}, nil })
		_, err := p.run(t, s, caller(quiet, "inner", nil), `{}`, Arrival{Find: finds(inner)})
		r := wantRefusal(t, err, tool.AskUnavailable, "")
		if ran || !strings.Contains(r.Text, "codehand asks no one about a call that a skill makes") {
			t.Errorf("%s: ran %v, %s", fallback, ran, r.Text)
		}
		// An operator's hook may still say yes, as to a client's call.
		p.Hooks = &fakeHooks{before: func(_ context.Context, e hooks.Event) (hooks.Outcome, error) {
			return hooks.Outcome{Opinions: []permission.Verdict{permission.Allow}}, nil
		}}
		if _, err = p.run(t, s, caller(quiet, "inner", nil), `{}`, Arrival{Find: finds(inner)}); err != nil || !ran {
			t.Errorf("%s: with a hook that allows: %v", fallback, err)
		}
	}
}

func TestInnerRefused(t *testing.T) {
	t.Parallel()
	ran := func(context.Context, tool.Env) (tool.Result, error) { t.Error("it ran"); return tool.Result{}, nil }
	for _, c := range []struct {
		name  string
		inner tool.Tool
		set   func(*session.State, *Inner)
		code  tool.Code
	}{
		{"plan mode", fixture("inner", writes, ran), func(s *session.State, _ *Inner) { s.Start = permission.Plan }, tool.PlanMode},
		{"a rule", fixture("inner", reads, ran), func(s *session.State, _ *Inner) { s.Rules = policy(t, "inner(x:1)") }, tool.PermissionDenied},
		{"a rule for the tool", fixture("inner", reads, ran), func(s *session.State, _ *Inner) { s.Rules = policy(t, "inner") }, tool.ToolDisabled},
		{"a scope", fixture("inner", reads, ran), func(_ *session.State, f *Inner) {
			f.Admit = func(context.Context) *tool.Refusal { return &tool.Refusal{Code: tool.ScopeMissing, Text: "no"} }
		}, tool.ScopeMissing},
		{"the input", tool.Define(tool.Def[editInput]{
			Spec: tool.Spec{Name: "inner", Title: "Inner tool", Description: "x.", Hint: "a fixture for tests"},
			Run:  func(ctx context.Context, env tool.Env, _ editInput) (tool.Result, error) { return ran(ctx, env) },
		}), nil, tool.InputInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, s := newCorridor(), newState(t, "s")
			found, left := admitted(c.inner), 0
			found.Leave = func() { left++ }
			if c.set != nil {
				c.set(s, &found)
			}
			find := func(_ string, arrive func()) (Inner, bool) { arrive(); return found, true }
			_, err := p.run(t, s, caller(quiet, "inner", nil), `{}`, Arrival{Find: find})
			wantRefusal(t, err, c.code, "")
			if left != 1 {
				t.Errorf("left %d times", left)
			}
		})
	}
}

// TestInnerCancelled: the end of the outer call is that of the inner one, also while it waits for its turn.
func TestInnerCancelled(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	ctx, cancel := context.WithCancel(t.Context())
	inner := fixture("inner", reads, func(ctx context.Context, _ tool.Env) (tool.Result, error) {
		cancel()
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	v := p.Arrive(s)
	defer v.Leave()
	_, err := v.Call(ctx, caller(quiet, "inner", nil), json.RawMessage(`{}`), Arrival{Find: finds(inner)})
	wantRefusal(t, err, tool.Interrupted, interruptedText)

	before := p.Arrive(s) // holds the queue
	ctx, cancel = context.WithCancel(t.Context())
	v = p.Arrive(s)
	defer v.Leave()
	outer := fixture("outer", quiet, func(ctx context.Context, env tool.Env) (tool.Result, error) {
		time.AfterFunc(0, cancel)
		return env.Call(ctx, "inner", nil, nil)
	})
	_, err = v.Call(ctx, outer, json.RawMessage(`{}`), Arrival{Find: finds(fixture("inner", reads, done))})
	wantRefusal(t, err, tool.Interrupted, interruptedText)
	before.Leave()
	if !p.gates.idle() {
		t.Error("a gate is left")
	}
}

// shellFixture is a tool with a command.
func shellFixture() tool.Tool {
	type input struct {
		Command string `json:"command" jsonschema:"command line"`
	}
	return tool.Define(tool.Def[input]{
		Spec:    tool.Spec{Name: "run_shell", Family: permission.FamilyBash, Aliases: []string{"Bash"}, Title: "Run it", Description: "x.", Hint: "a fixture for tests"},
		Command: func(in input) string { return in.Command },
		Run: func(_ context.Context, _ tool.Env, in input) (tool.Result, error) {
			return tool.Result{Text: "ran " + in.Command}, nil
		},
	})
}

// TestInnerLoan: the rules of a skill count for its own commands, and for no other call.
func TestInnerLoan(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	p.AskFallback = "deny"
	loan := &tool.Loan{Skill: "build", Rules: []string{"Bash(make *)"}, Life: time.Minute}
	call := func(command string, loan *tool.Loan) error {
		outer := fixture("outer", quiet, func(ctx context.Context, env tool.Env) (tool.Result, error) {
			return env.Call(ctx, "run_shell", json.RawMessage(`{"command":"`+command+`"}`), loan)
		})
		_, err := p.run(t, s, outer, `{}`, Arrival{Find: finds(shellFixture())})
		return err
	}
	if err := call("make all", loan); err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	rec := p.records[0]
	p.mu.Unlock()
	if rec.Rule != "Bash(make *)" || rec.Origin != "skill build" || rec.By != bySession {
		t.Errorf("the record says rule %q of %q by %q", rec.Rule, rec.Origin, rec.By)
	}
	wantRefusal(t, call("npm test", loan), tool.AskUnavailable, "")
	wantRefusal(t, call("make all", nil), tool.AskUnavailable, "")
	if all, err := s.Grants.Load(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("kept are %v, %v", all, err)
	}
	s.Shared = true
	wantRefusal(t, call("make all", loan), tool.AskUnavailable, "")
}

// lender is a tool that lends rules.
func lender(loan *tool.Loan, failed tool.Code) tool.Tool {
	return fixture("lender", quiet, func(context.Context, tool.Env) (tool.Result, error) {
		return tool.Result{Text: "text", Lends: loan, Failed: failed}, nil
	})
}

// TestLoans: what a skill lends holds from the end of its call, in the place of what an earlier one lent, beside what
// persons granted, and for no longer than it says.
func TestLoans(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	p.AskFallback = "deny"
	now := time.Now()
	granted := []permission.Grant{{Rule: "Bash(npm run *)", At: now.Add(-time.Hour)}}
	if _, err := s.Grants.Change(t.Context(), func([]permission.Grant) ([]permission.Grant, error) { return granted, nil }); err != nil {
		t.Fatal(err)
	}
	lend := func(loan *tool.Loan, failed tool.Code) {
		t.Helper()
		if _, err := p.run(t, s, lender(loan, failed), `{}`, Arrival{}); err != nil {
			t.Fatal(err)
		}
	}
	may := func(command string) bool {
		t.Helper()
		_, err := p.run(t, s, shellFixture(), `{"command":"`+command+`"}`, Arrival{})
		if err != nil {
			wantRefusal(t, err, tool.AskUnavailable, "")
		}
		return err == nil
	}
	want := func(what string, make, just, npm bool) {
		t.Helper()
		if may("make all") != make || may("just all") != just || may("npm run x") != npm {
			t.Errorf("%s: make %v, just %v, npm %v", what, may("make all"), may("just all"), may("npm run x"))
		}
	}
	want("at first", false, false, true)
	lend(&tool.Loan{Skill: "a", Rules: []string{"Bash(make *)"}, Life: time.Minute}, tool.CommandFailed)
	want("after a call that failed", false, false, true)
	lend(&tool.Loan{Skill: "a", Rules: []string{"Bash(make *)"}, Life: time.Minute}, "")
	want("after a loan", true, false, true)
	lend(nil, "")
	want("after a call that lends nothing", true, false, true)
	lend(&tool.Loan{Skill: "b", Rules: []string{"Bash(just *)"}, Life: time.Minute}, "")
	want("after another loan", false, true, true)
	lend(&tool.Loan{Skill: "c"}, "")
	want("after a skill without rules", false, false, true)
	lend(&tool.Loan{Skill: "a", Rules: []string{"Bash(make *)"}, Life: -time.Second}, "")
	want("after its time", false, false, true)

	shared := newState(t, "shared")
	shared.Shared = true
	if _, err := p.run(t, shared, lender(&tool.Loan{Skill: "a", Rules: []string{"Bash(make *)"}, Life: time.Minute}, ""), `{}`, Arrival{}); err != nil {
		t.Fatal(err)
	}
	if all, err := shared.Grants.Load(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("a shared session keeps %v, %v", all, err)
	}
}

// TestLoanWithoutStore: the model is told that the rules do not hold.
func TestLoanWithoutStore(t *testing.T) {
	t.Parallel()
	p, s := newCorridor(), newState(t, "s")
	s.Grants = session.Cell[[]permission.Grant]{} // refuses changes
	r, err := p.run(t, s, lender(&tool.Loan{Skill: "a", Rules: []string{"Bash(make *)"}, Life: time.Minute}, ""), `{}`, Arrival{})
	if err != nil || !strings.HasSuffix(r.Text, "are not in force]") {
		t.Errorf("got %q, %v", r.Text, err)
	}
}
