package session

import (
	"errors"
	"testing"
	"time"

	"codehand/tools/permission"
)

// celled is a State whose cells of a Snapshot are in a Memory.
func celled(m Memory) *State {
	return &State{
		Modes: Modes{Highest: permission.Bypass}, Cwd: NewCell[string](m, "cwd"), Choices: NewCell[Choices](m, "choices"),
		Plan: NewCell[Plan](m, "plan"), Mode: NewCell[permission.Mode](m, "mode"),
	}
}

// put gives a cell a value.
func put[T any](t *testing.T, c Cell[T], value T) {
	t.Helper()
	if _, err := c.Change(t.Context(), func(T) (T, error) { return value, nil }); err != nil {
		t.Fatal(err)
	}
}

// in is what a Snapshot shows of a cell.
func in[T any](t *testing.T, c Cell[T], shown Snapshot) T {
	t.Helper()
	value, err := c.In(t.Context(), shown)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestSnapshot: a Snapshot shows its moment, whatever is written later and by whomever; Load and Change do not look at it.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	m := newDrawer()
	s, other := celled(m), celled(m) // the same session in another process
	put(t, s.Cwd, "/one")
	put(t, s.Plan, Plan{Path: "/plan"})
	shown, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.Cwd, "/two")
	put(t, other.Mode, permission.Plan)
	put(t, other.Plan, Plan{Path: "/other"})
	if got := in(t, s.Cwd, shown); got != "/one" {
		t.Errorf("the cwd is %s", got)
	}
	if got := in(t, s.Plan, shown); got.Path != "/plan" {
		t.Errorf("the plan is %+v", got)
	}
	if got, _, err := s.InForceIn(t.Context(), shown, time.Now()); got != permission.Default || err != nil {
		t.Errorf("the mode that was in force is %s, %v", got, err)
	}
	if got, _, err := s.InForce(t.Context(), time.Now()); got != permission.Plan || err != nil {
		t.Errorf("the mode in force is %s, %v", got, err)
	}
	if got, err := s.Cwd.Load(t.Context()); got != "/two" || err != nil {
		t.Errorf("Load says %s, %v", got, err)
	}
	if got, err := s.Cwd.Change(t.Context(), func(old string) (string, error) { return old + "/x", nil }); got != "/two/x" || err != nil {
		t.Errorf("Change says %s, %v", got, err)
	}
	if got := in(t, s.Cwd, shown); got != "/one" {
		t.Errorf("after a Change the Snapshot shows %s", got)
	}
}

// TestSnapshotShowsItsCellsAlone: a cell that is kept elsewhere, or not among those of a Snapshot, is read from its Memory.
func TestSnapshotShowsItsCellsAlone(t *testing.T) {
	t.Parallel()
	m, apart := newDrawer(), newDrawer()
	s := celled(m)
	s.Mode, s.Grants = NewCell[permission.Mode](apart, "mode"), NewCell[[]permission.Grant](m, "grants")
	shown, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.Mode, permission.Plan)
	put(t, s.Grants, []permission.Grant{{}})
	if got := in(t, s.Mode, shown); got != permission.Plan {
		t.Errorf("a cell that is kept elsewhere is %s", got)
	}
	if got := in(t, s.Grants, shown); len(got) != 1 {
		t.Errorf("another cell is %v", got)
	}
	if got := in(t, s.Cwd, Snapshot{}); got != "" {
		t.Errorf("without a Snapshot the cwd is %s", got)
	}
	if shown, err := new(State).Look(t.Context()); err != nil || in(t, new(State).Cwd, shown) != "" {
		t.Errorf("a State without cells: %v", err)
	}
}

// TestSnapshotFails: a Store that does not answer gives no Snapshot, and a value that cannot be read breaks its own cell.
func TestSnapshotFails(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	if _, err := celled(&drawer{fault: lost}).Look(t.Context()); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
	m := newDrawer()
	s := celled(m)
	put(t, s.Cwd, "/one")
	m.values["plan"], m.revs["plan"] = []byte("["), 1
	shown, err := s.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan.In(t.Context(), shown); err == nil {
		t.Error("a plan that cannot be read is shown")
	}
	if got := in(t, s.Cwd, shown); got != "/one" {
		t.Errorf("the cwd is %s", got)
	}
	s.Start = permission.Plan
	if _, _, err := s.InForceIn(t.Context(), shown, time.Now()); err == nil {
		t.Error("a mode is in force though the plan cannot be read")
	}
}
