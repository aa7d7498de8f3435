package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"codehand/server/state"
	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// A failingMemory answers until it has an error.
type failingMemory struct {
	session.Memory
	err error
}

func (m *failingMemory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if m.err != nil {
		return nil, 0, m.err
	}
	return m.Memory.Get(ctx, key)
}

func (m *failingMemory) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	if m.err != nil {
		return nil, nil, m.err
	}
	return m.Memory.GetAll(ctx, keys...)
}

func (m *failingMemory) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	if m.err != nil {
		return false, m.err
	}
	return m.Memory.Swap(ctx, key, value, rev)
}

// celled is a State that starts in bypassPermissions, with a memory for the cells of a Snapshot.
func celled(t *testing.T) (*session.State, *failingMemory) {
	t.Helper()
	store := state.NewMemory(state.MemoryOptions{})
	m := &failingMemory{Memory: state.Scoped(store, state.Key(state.Session, state.Hash("p"), state.Hash("s")))}
	s := newState(t, "s")
	s.Start = permission.Bypass
	s.Cwd, s.Choices = session.NewCell[string](m, "cwd"), session.NewCell[session.Choices](m, "choices")
	s.Mode, s.Plan = session.NewCell[permission.Mode](m, "mode"), session.NewCell[session.Plan](m, "plan")
	return s, m
}

// located is an Arrival of a call that was located now.
func located(t *testing.T, s *session.State) Arrival {
	t.Helper()
	shown, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Arrival{Admission: Admission{Located: shown}}
}

// switchTo brings a session into a mode, as another call or another process does.
func switchTo(t *testing.T, s *session.State, mode permission.Mode) {
	t.Helper()
	set := func(permission.Mode) (permission.Mode, error) { return mode, nil }
	if _, err := s.Mode.Change(t.Context(), set); err != nil {
		t.Error(err)
	}
}

// TestPlanModeAfterLocated: plan mode that begins after a call was located holds for each call that changes something,
// whether or not it had to wait.
func TestPlanModeAfterLocated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		traits tool.Traits
		code   tool.Code // "": it runs
	}{
		{"writer", writes, tool.PlanMode},
		{"ungated", tool.Traits{Ungated: true}, tool.PlanMode},
		{"reader", reads, ""},
		{"private", tool.Traits{Private: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newCorridor()
			s, _ := celled(t)
			a := located(t, s)
			switchTo(t, s, permission.Plan)
			ran := false
			_, err := p.run(t, s, fixture("work", c.traits, func(context.Context, tool.Env) (tool.Result, error) {
				ran = true
				return tool.Result{}, nil
			}), "", a)
			if c.code != "" {
				wantRefusal(t, err, c.code, "")
			} else if err != nil {
				t.Error(err)
			}
			if ran != (c.code == "") {
				t.Errorf("ran: %v", ran)
			}
		})
	}
}

// TestPlanModeWhileHooked: what was located serves for the first look at plan mode alone. A hook that gives another input
// takes its time, and a call that only read may change something with that input.
func TestPlanModeWhileHooked(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s, _ := celled(t)
	p.Hooks = &fakeHooks{before: func(context.Context, hooks.Event) (hooks.Outcome, error) {
		switchTo(t, s, permission.Plan)
		return hooks.Outcome{Input: json.RawMessage(`{"path":"b","text":"write"}`)}, nil
	}}
	var ran []editInput
	tl := editor(&ran, func(d *tool.Def[editInput]) {
		d.Traits = func(_ *session.State, in editInput) tool.Traits { return tool.Traits{ReadOnly: in.Text != "write"} }
	})
	_, err := p.run(t, s, tl, `{"path":"a"}`, located(t, s))
	wantRefusal(t, err, tool.PlanMode, "")
	if len(ran) > 0 || p.last().Stages.Permit != 0 {
		t.Errorf("ran with %v, asked for %v", ran, p.last().Stages.Permit)
	}
}

// TestPlanModeOfTheParent: a sub-agent's call that waits while its parent goes to plan mode changes nothing either.
func TestPlanModeOfTheParent(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s, _ := celled(t)
	parent := permission.Bypass
	s.Modes, s.Depth = session.Modes{Start: parent, Highest: parent, Above: func(context.Context) permission.Mode { return parent }}, 1
	if _, err := p.run(t, s, fixture("work", writes, done), "", located(t, s)); err != nil {
		t.Error(err)
	}
	a := located(t, s)
	parent = permission.Plan
	_, err := p.run(t, s, fixture("work", writes, done), "", a)
	wantRefusal(t, err, tool.PlanMode, "")
	if _, err := p.run(t, s, fixture("read", reads, done), "", a); err != nil {
		t.Error(err)
	}
}

// TestLocatedInPlanMode: the first look refuses by what was located, before a hook or a person is asked about the call.
func TestLocatedInPlanMode(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s, _ := celled(t)
	switchTo(t, s, permission.Plan)
	a := located(t, s)
	switchTo(t, s, permission.AcceptEdits)
	_, err := p.run(t, s, fixture("work", writes, done), "", a)
	wantRefusal(t, err, tool.PlanMode, "")
	if _, err := p.run(t, s, fixture("read", reads, done), "", a); err != nil || p.last().Mode != "plan" {
		t.Errorf("a reader runs in mode %s, %v", p.last().Mode, err)
	}
}

// TestStoreLostAfterLocated: a Store that fails once a call was located refuses what changes something, and lets readers
// on.
func TestStoreLostAfterLocated(t *testing.T) {
	t.Parallel()
	p := newCorridor()
	s, m := celled(t)
	a := located(t, s)
	m.err = errLost
	_, err := p.run(t, s, fixture("work", writes, done), "", a)
	if r := wantRefusal(t, err, tool.StateUnavailable, ""); !errors.Is(r, errLost) {
		t.Error("the cause is not kept for the log")
	}
	if _, err := p.run(t, s, fixture("read", reads, done), "", a); err != nil || p.last().Mode != "bypassPermissions" {
		t.Errorf("a reader runs in mode %s, %v", p.last().Mode, err)
	}
}
