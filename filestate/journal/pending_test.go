package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"codehand/filestate/fault"
)

// A change that was made while the system had no file descriptor left stayed open: when another program had changed the
// file since, the next start said that it had stopped half way.
func TestEndLater(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		end   func(*testing.T, Pending)
		state string // of the note, when it ended
	}{
		"done":   {func(t *testing.T, p Pending) { p.Done(t.Context()) }, stateDone},
		"unsure": {func(_ *testing.T, p Pending) { p.Unsure() }, stateUnsure},
	} {
		for how, later := range map[string]func(t *testing.T, j *Journal){
			"change":   func(t *testing.T, j *Journal) { made(t, j) },
			"question": func(t *testing.T, j *Journal) { _ = pageOf(t, j, "") },
			"close":    func(t *testing.T, j *Journal) { _ = j.Close() },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				var full atomic.Bool
				dir := filepath.Join(t.TempDir(), "journal")
				j, err := Open(dir, Options{Fast: true, Check: func(at fault.Step) error {
					if at == fault.End && full.Load() {
						return syscall.EMFILE
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = j.Close() })
				full.Store(true)
				p, err := j.Begin(By{}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				end.end(t, p)
				if got := statesOf(t, dir, p.ID); !slices.Equal(got, []string{stateOpen}) {
					t.Fatalf("the note is %q", got)
				}
				full.Store(false)
				later(t, j)
				if got := statesOf(t, dir, p.ID); !slices.Equal(got, []string{end.state}) {
					t.Errorf("the note is %q, want %q", got, end.state)
				}
				if len(j.unended.ends) > 0 {
					t.Errorf("%d ends are left", len(j.unended.ends))
				}
			})
		}
	}
}

// The note of a change that did not happen, and could not be removed, goes with the next question.
func TestDropLater(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	p, err := j.Begin(By{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(j.dir, p.name.path())
	// A directory that is not empty cannot be removed, as nothing can without a file descriptor.
	if err := errors.Join(os.Rename(note, note+".aside"), os.MkdirAll(filepath.Join(note, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	p.Drop()
	if err := errors.Join(os.RemoveAll(note), os.Rename(note+".aside", note)); err != nil {
		t.Fatal(err)
	}
	if got := pageOf(t, j, ""); len(got) > 0 {
		t.Errorf("the changes are %q", got)
	}
	if got := statesOf(t, j.dir, p.ID); len(got) > 0 {
		t.Errorf("the note is %q", got)
	}
}

// What another process has settled meanwhile is not tried for ever, and what cannot be ended is not kept without a limit.
func TestEndLaterLimits(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := Open(dir, Options{Fast: true, Check: func(at fault.Step) error {
		if at == fault.End && full.Load() {
			return errors.New("no")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	full.Store(true)
	for range mostUnended + 3 {
		made(t, j)
	}
	if n := len(j.unended.ends); n != mostUnended {
		t.Errorf("%d ends are kept, want %d", n, mostUnended)
	}
	for n := range j.names() {
		if err := j.root.Remove(n.path()); err != nil {
			t.Fatal(err)
		}
	}
	full.Store(false)
	_ = pageOf(t, j, "")
	if n := len(j.unended.ends); n > 0 {
		t.Errorf("%d ends are left", n)
	}
}

// statesOf are the endings of the names of a note.
func statesOf(t *testing.T, dir, id string) (states []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*-"+id+".*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		n, ok := parseNoteName(filepath.Base(path))
		if !ok {
			t.Fatalf("%s is no note", path)
		}
		states = append(states, n.state)
	}
	return states
}
