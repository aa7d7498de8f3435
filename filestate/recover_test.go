package filestate_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

func (d keptDesk) recover() []journal.Repair {
	d.Helper()
	if runtime.GOOS == "windows" {
		d.Skip("it is not known there which processes have ended")
	}
	repairs, err := filestate.New(filestate.Options{Journal: d.j, Dir: d.TempDir(), Fast: true}).Recover(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return repairs
}

// deadProcess is the id and start of a process that has ended.
func deadProcess(t *testing.T) (pid int, started uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, started = cmd.Process.Pid, filestate.StartOf(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return pid, started
}

// An open note of a process that died is settled by what the files hold, and by what later changes found.
func TestRecover(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		do      func(d keptDesk) // after the change of a and b from old to new
		outcome journal.Outcome
		a, b    string // afterwards
		entries int
	}{
		{"done", func(keptDesk) {}, "done", "new a", "new b", 1},
		{"not done", func(d keptDesk) { d.write("a", "old a"); d.write("b", "old b") }, "not done", "old a", "old b", 0},
		{"half", func(d keptDesk) { d.write("b", "old b") }, "taken back", "old a", "old b", 0},
		{"the other half", func(d keptDesk) { d.write("a", "old a") }, "taken back", "old a", "old b", 0},
		{"somebody changed a file", func(d keptDesk) { d.write("b", "foreign") }, "unsure", "new a", "foreign", 1},
		{"somebody removed a file", func(d keptDesk) { _ = os.Remove(d.path("b")) }, "unsure", "new a", "", 1},
		{"later changes found it done", func(d keptDesk) {
			d.must(d.put("a", "newer a", unseen))
			d.must(d.put("b", "newer b", unseen))
		}, "done", "newer a", "newer b", 3},
		{"a later change was undone", func(d keptDesk) { d.mustUndo(d.must(d.put("a", "newer", unseen)).ID) }, "done", "new a", "new b", 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			d.write("a", "old a")
			d.write("b", "old b")
			if err := update(t.Context(), d.l, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes("new a")},
				filestate.Edit{File: d.file("b"), Unseen: true, Change: makes("new b")}); err != nil {
				t.Fatal(err)
			}
			c.do(d)
			d.leaveOpen(callID)
			d = d.again()
			repairs := d.recover()
			if len(repairs) != 1 || repairs[0].ID != callID || repairs[0].Outcome != c.outcome {
				t.Errorf("the repairs are %+v, want %s", repairs, c.outcome)
			}
			for name, want := range map[string]string{"a": c.a, "b": c.b} {
				if got, err := os.ReadFile(d.path(name)); string(got) != want || err != nil && want != "" {
					t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
				}
			}
			entries := d.history(journal.Query{})
			if len(entries) != c.entries || c.entries > 0 && entries[len(entries)-1].Unsure != (c.outcome == "unsure") {
				t.Errorf("the history is %+v", entries)
			}
			d.noTemps()
			if again := d.recover(); len(again) > 0 {
				t.Errorf("settled twice: %+v", again)
			}
		})
	}
}

// A process died after its exchange had displaced what another program had just saved: that file gets its name again.
func TestRecoverPutsBack(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old")
	d.see("a")
	d.beforeSteps(func(step string) error {
		switch step {
		case "rename":
			d.write("a", "foreign")
		case "put back":
			return syscall.EIO // what a crash leaves
		}
		return nil
	})
	if _, err := d.l.Update(t.Context(), journal.By{Call: callID}, filestate.Edit{File: d.file("a"), Change: makes("new")}); err == nil {
		t.Fatal("no error")
	}
	d.holds("a", "new")
	d.beforeSteps(func(string) error { return nil })
	d.leaveOpen(callID)
	d = d.again()
	if r := d.recover(); len(r) != 1 || r[0].Outcome != "not done" {
		t.Errorf("the repairs are %+v", r)
	}
	d.holds("a", "foreign")
	d.noTemps()
	if e := d.history(journal.Query{}); len(e) > 0 {
		t.Errorf("the history is %+v", e)
	}
}

// After a power loss a temporary file may hold anything: bytes that were never synced, of ours or of the program that
// had saved the file before. It used to take the place of the acknowledged content, as if a program had saved it in
// between.
func TestRecoverAfterPowerLoss(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, now string
		outcome        journal.Outcome
	}{
		{"the exchange was made", "old", "new", "done"},
		{"a new file has no name yet", "", "", "not done"},
		{"a new file", "", "new", "done"},
		{"not made", "old", "old", "not done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newKeptDesk(t)
			if c.old != "" {
				d.write("a", c.old)
			}
			if err := update(t.Context(), d.l, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes("new")}); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(d.path("a")); err != nil {
				t.Fatal(err)
			}
			if c.now != "" {
				d.write("a", c.now)
			}
			garbage := string(make([]byte, 3))
			d.write(d.tempOf(callID), garbage)
			d.leaveOpenAt(callID, "an earlier start")
			d = d.again()
			if r := d.recover(); len(r) != 1 || r[0].Outcome != c.outcome {
				t.Errorf("the repairs are %+v, want %s", r, c.outcome)
			}
			if got, err := os.ReadFile(d.path("a")); string(got) != c.now || err != nil && c.now != "" {
				t.Errorf("the file holds %q, %v, want %q", got, err, c.now)
			}
			d.noTemps()
			if !d.keepsContent(garbage) {
				t.Error("the journal has no copy of what was removed")
			}
		})
	}
}

// The change of a process that lives is left alone.
func TestRecoverLeavesTheLiving(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old")
	inside := errors.New("inside")
	d.beforeSteps(func(step string) error {
		if step != "rename" {
			return nil
		}
		if r, err := d.again().l.Recover(d.Context()); err != nil || len(r) > 0 {
			t.Errorf("the repairs are %+v, %v", r, err)
		}
		if e := d.history(journal.Query{}); len(e) != 1 || !e[0].Open {
			t.Errorf("the history is %+v", e)
		}
		if len(temps(t, d.dir)) != 1 {
			t.Error("the temporary file is gone")
		}
		return inside
	})
	_, err := d.put("a", "new", unseen)
	wantError(t, err, inside)
	d.noTemps()
}

// What a process left under a temporary name is removed if the journal knows it, and kept there first if not.
func TestSweepKeepsWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	pid, started := deadProcess(t)
	d := newKeptDesk(t)
	d.write("a", "known")
	d.must(d.put("a", "new", unseen))
	left := map[string]string{}
	for i, content := range []string{"known", "new", "only copy", ""} {
		name := filestate.SwapNameOf(pid, started)
		left[name] = content
		d.write("sub/"+name, content)
		if i == 0 {
			d.write("sub/"+filestate.SwapNameOf(os.Getppid(), filestate.StartOf(os.Getppid())), "of the living")
		}
	}
	plain := newDesk(t)
	plain.dir = d.dir
	f := d.file("sub/b")
	if _, err := plain.l.Update(t.Context(), journal.By{}, filestate.Edit{File: f, Change: makes("x")}); err != nil {
		t.Fatal(err)
	}
	if got := temps(t, d.dir); len(got) != len(left)+1 {
		t.Errorf("a ledger without a journal left %v", got)
	}
	if _, err := d.l.Update(context.WithoutCancel(t.Context()), journal.By{}, filestate.Edit{File: f, Unseen: true, Change: makes("y")}); err != nil {
		t.Fatal(err)
	}
	got := temps(t, d.dir)
	if len(got) != 1 || !strings.Contains(got[0], "/sub/") {
		t.Fatalf("left are %v", got)
	}
	if b, err := os.ReadFile(got[0]); err != nil || string(b) != "of the living" {
		t.Errorf("left is %q, %v", b, err)
	}
	var kept []string
	for _, e := range d.history(journal.Query{Kept: true}) {
		if e.Kept == "recovered" {
			before, _, err := d.j.Contents(t.Context(), e.ID, e.Files[0].Path)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, string(before))
		}
	}
	if len(kept) != 2 || !d.keepsContent("only copy") {
		t.Errorf("recovered are %q", kept)
	}
}
