package pipeline

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/state"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Plan mode of a session that several conversations share lasts as long as calls come, and an hour longer: the one that
// entered it may be gone.
func TestSharedPlanModeEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, shared := range []bool{true, false} {
			p, s := newCorridor(), newState(t, "s")
			memory := state.Scoped(state.NewMemory(state.MemoryOptions{}), "sess.p.s")
			s.Mode = session.NewCell[permission.Mode](memory, "mode")
			s.Plan = session.NewCell[session.Plan](memory, "plan")
			s.Shared = shared
			s.Start = permission.AcceptEdits
			_, err := s.Mode.Change(t.Context(), func(permission.Mode) (permission.Mode, error) { return permission.Plan, nil })
			if err == nil {
				_, err = s.Plan.Change(t.Context(), func(session.Plan) (session.Plan, error) {
					return session.Plan{Path: "/none", Last: time.Now(), Before: permission.DontAsk}, nil
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			refused := func() {
				t.Helper()
				_, err := p.run(t, s, fixture("work", writes, done), "", Arrival{})
				wantRefusal(t, err, tool.PlanMode, "")
			}
			for range 3 { // each call keeps it alive, also one that is refused
				time.Sleep(59 * time.Minute)
				refused()
			}
			time.Sleep(30 * time.Second)
			refused()
			time.Sleep(session.PlanIdle)
			if !shared {
				refused()
				continue
			}
			if _, err := p.run(t, s, fixture("look", reads, done), "", Arrival{}); err != nil || p.last().Mode != "dontAsk" {
				t.Errorf("an hour later the mode is %s, %v", p.last().Mode, err)
			}
		}
	})
}

// A link that took the place of the plan file in a root let the file behind it be changed in plan mode.
func TestPlanFileIsNoLink(t *testing.T) {
	t.Parallel()
	root := leaktest.Dir(t)
	plan := filepath.Join(root, "plan.md")
	if err := errors.Join(os.WriteFile(filepath.Join(root, "main.go"), nil, 0o600), os.Symlink("main.go", plan)); err != nil {
		t.Fatal(err)
	}
	p, s := newCorridor(), newState(t, "s", root)
	s.Start = permission.Plan
	if _, err := s.Plan.Change(t.Context(), func(session.Plan) (session.Plan, error) { return session.Plan{Path: plan}, nil }); err != nil {
		t.Fatal(err)
	}
	var ran []editInput
	for _, path := range []string{"plan.md", "main.go"} {
		_, err := p.run(t, s, editor(&ran, nil), `{"path":"`+path+`"}`, Arrival{})
		wantRefusal(t, err, tool.PlanMode, "")
	}
}
