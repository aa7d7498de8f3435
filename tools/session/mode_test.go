package session

import (
	"errors"
	"testing"
	"time"

	"codehand/tools/permission"
)

func TestInForce(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		name           string
		set            permission.Mode // Default: it is not set
		plan           Plan
		start, highest permission.Mode
		shared         bool
		want           permission.Mode
	}{
		{"as it starts", permission.Default, Plan{}, permission.AcceptEdits, permission.Bypass, false, permission.AcceptEdits},
		{"never above the limit", permission.Default, Plan{}, permission.Bypass, permission.AcceptEdits, false, permission.AcceptEdits},
		{"a set one above the limit", permission.AcceptEdits, Plan{}, permission.Default, permission.Default, false, permission.Default},
		{"plan", permission.Plan, Plan{}, permission.AcceptEdits, permission.Bypass, false, permission.Plan},
		{"started in plan", permission.Default, Plan{}, permission.Plan, permission.Bypass, false, permission.Plan},
		{"started in plan, and left it", permission.Default, Plan{Left: true}, permission.Plan, permission.Bypass, false, permission.Default},
		{"left, but the limit is plan", permission.AcceptEdits, Plan{Left: true}, permission.Plan, permission.Plan, false, permission.Plan},
		{"left, and entered again", permission.Plan, Plan{Left: true}, permission.Plan, permission.Bypass, false, permission.Plan},
		{"left long ago, started elsewhere", permission.Default, Plan{Left: true}, permission.AcceptEdits, permission.Bypass, false, permission.AcceptEdits},
		{"shared", permission.Plan, Plan{Last: now.Add(-PlanIdle)}, permission.AcceptEdits, permission.Bypass, true, permission.Plan},
		{"shared and idle", permission.Plan, Plan{Last: now.Add(-PlanIdle - 1)}, permission.AcceptEdits, permission.Bypass, true, permission.AcceptEdits},
		{"shared and idle, with a mode before", permission.Plan, Plan{Before: permission.DontAsk}, permission.AcceptEdits, permission.Bypass, true, permission.DontAsk},
		{"shared and idle, started in plan", permission.Plan, Plan{}, permission.Plan, permission.Bypass, true, permission.Plan},
		{"not shared and idle", permission.Plan, Plan{Last: now.Add(-48 * time.Hour)}, permission.AcceptEdits, permission.Bypass, false, permission.Plan},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newDrawer()
			s := &State{Modes: Modes{Start: c.start, Highest: c.highest}, Shared: c.shared, Mode: NewCell[permission.Mode](m, "mode"), Plan: NewCell[Plan](m, "plan")}
			_, err := s.Mode.Change(t.Context(), func(permission.Mode) (permission.Mode, error) { return c.set, nil })
			if err == nil {
				_, err = s.Plan.Change(t.Context(), func(Plan) (Plan, error) { return c.plan, nil })
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, _, err := s.InForce(t.Context(), now); got != c.want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
}

// A Store that does not answer is said, and never taken for a mode.
func TestInForceUnknown(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	s := &State{Modes: Modes{Highest: permission.Bypass}, Mode: NewCell[permission.Mode](&drawer{fault: lost}, "mode")}
	if _, _, err := s.InForce(t.Context(), time.Now()); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	s = &State{Modes: Modes{Highest: permission.Bypass, Start: permission.Plan}, Plan: NewCell[Plan](&drawer{fault: lost}, "plan")}
	if _, _, err := s.InForce(t.Context(), time.Now()); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}
