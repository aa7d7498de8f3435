package filestate_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// When the journal could not keep what another program saved, it was dropped, or stayed in a temporary file, without a
// log line.
func TestUnkeptIsLogged(t *testing.T) {
	t.Parallel()
	const kept = "what somebody else saved just when a file was changed is not in the journal"
	for name, c := range map[string]struct {
		step    string // in which
		save    func(d keptDesk, old *os.File) error
		message string
		left    string // what the temporary file holds that stays; "": there is none
		inFile  string
	}{
		"into the old file, later": {"", nil, "what a program saved late into a file that was changed is lost", "", "new"},
		"into the old file": {"remove", func(_ keptDesk, old *os.File) error {
			_, err := old.WriteString("late")
			return err
		}, kept, "late", "new"},
		"before the exchange":    {"rename", func(d keptDesk, _ *os.File) error { d.write("a", "foreign"); return nil }, kept, "", "foreign"},
		"before it was put back": {"put back", func(d keptDesk, _ *os.File) error { d.write("a", "foreign"); return nil }, kept, "foreign", "before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("a", "old")
			old, err := os.OpenFile(d.path("a"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			tick(t, d.path("a"))
			d.beforeSteps(func(step string) error {
				if step == "rename" && c.step == "put back" {
					d.write("a", "before")
				}
				if step != c.step {
					return nil
				}
				breakJournal(t, d.kept)
				return c.save(d, old)
			})
			_, err = d.l.Update(t.Context(), journal.By{Call: callID}, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes("new")})
			if _, stale := errors.AsType[*filestate.StaleError](err); err != nil && !stale {
				t.Error(err)
			}
			if c.step == "" {
				breakJournal(t, d.kept)
				if _, err := old.WriteString("late"); err != nil { // the file has no name any more
					t.Fatal(err)
				}
			}
			if err := d.j.Close(); err != nil { // which looks at what comes late for the last time
				t.Fatal(err)
			}
			log := d.gate.logged()
			for _, want := range []string{c.message, d.path("a"), callID, "not a directory"} {
				if !strings.Contains(log, want) {
					t.Errorf("the log lacks %q: %s", want, log)
				}
			}
			d.holds("a", c.inFile)
			left := temps(t, d.dir)
			if c.left == "" && len(left) > 0 || c.left != "" && len(left) != 1 {
				t.Fatalf("temporary files %v", left)
			}
			if c.left != "" {
				if got := d.read(filepath.Base(left[0])); got != c.left || !strings.Contains(log, filepath.Base(left[0])) {
					t.Errorf("%s holds %q, want %q, and the log names it: %s", left[0], got, c.left, log)
				}
			}
		})
	}
}

// What a process that was killed left, and the journal cannot take, stays and is named in the log.
func TestUnkeptLeftOver(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	left := filestate.SwapNameOf(deadProcess(t))
	d.write(left, "the only copy")
	notes := 0
	d.beforeSteps(func(step string) error {
		if step == "note in the journal" {
			if notes++; notes == 2 { // the first is of the change
				return syscall.ENOSPC
			}
		}
		return nil
	})
	if _, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"), Change: makes("new")}); err != nil {
		t.Fatal(err)
	}
	d.holds(left, "the only copy")
	for _, want := range []string{"what a process that was killed left is not in the journal", d.path(left), syscall.ENOSPC.Error()} {
		if log := d.gate.logged(); !strings.Contains(log, want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	}
}

// breakJournal lets nothing be written to a journal any more, root's neither.
func breakJournal(t *testing.T, dir string) {
	t.Helper()
	days, err := filepath.Glob(filepath.Join(dir, "????????"))
	if err != nil || len(days) != 1 {
		t.Fatalf("days %v, %v", days, err)
	}
	if err := errors.Join(os.Rename(days[0], filepath.Join(dir, "away")), os.WriteFile(days[0], nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}
