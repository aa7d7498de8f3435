package filestate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/leaktest"
)

// A trial is a change whose every step is made to fail, or is the last one.
type trial struct {
	name  string
	setUp func(keptDesk)
	run   func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error
	step  func(step string) error // fails besides; nil: nothing does
}

// fails is the error of a step that always fails in this trial.
func (c trial) fails(step string) error {
	if c.step == nil {
		return nil
	}
	return c.step(step)
}

// notOurs lets a file be one whose owner cannot be kept, so that it is written in place.
func notOurs(step string) error {
	if step == "owner" {
		return syscall.EPERM
	}
	return nil
}

func makes(content string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(content), nil }
}

func update(ctx context.Context, l *filestate.Ledger, edits ...filestate.Edit) error {
	_, err := l.Update(ctx, journal.By{Call: callID}, edits...)
	return err
}

// trials leave "a" and what is beside it old or new, as trialFiles says.
func trials() []trial {
	old := func(d keptDesk) { d.write("a", "old a\n"); d.write("z", "old z\n") }
	long := "%s a" + strings.Repeat(".", 600<<10) + "%[1]s z\n" // of three parts when it is written in place
	return []trial{
		{"update", old, func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error {
			return update(ctx, l, filestate.Edit{File: file("a"), Unseen: true, Change: makes("new a\n")})
		}, nil},
		{"create", old, func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error {
			return update(ctx, l, filestate.Edit{File: file("x/y/b"), Change: makes("new b\n")})
		}, nil},
		{"several", old, func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error {
			return update(ctx, l, filestate.Edit{File: file("a"), Unseen: true, Change: makes("new a\n")},
				filestate.Edit{File: file("x/y/b"), Change: makes("new b\n")},
				filestate.Edit{File: file("z"), Unseen: true, Change: makes("new z\n")})
		}, nil},
		{"undo of several", func(d keptDesk) {
			d.write("a", "new a\n") // what is new and old is the other way round
			d.write("z", "new z\n")
			if err := update(d.Context(), d.l, filestate.Edit{File: d.file("a"), Unseen: true, Change: makes("old a\n")},
				filestate.Edit{File: d.file("x/y/b"), Change: makes("old b\n")},
				filestate.Edit{File: d.file("z"), Unseen: true, Change: makes("old z\n")}); err != nil {
				d.Fatal(err)
			}
		}, func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error {
			_, err := l.Undo(ctx, journal.By{}, filestate.Step{ID: callID, File: file("a")},
				filestate.Step{ID: callID, File: file("x/y/b")}, filestate.Step{ID: callID, File: file("z")})
			return err
		}, nil},
		{"in place", func(d keptDesk) { d.write("a", fmt.Sprintf(long, "old")) }, func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error {
			return update(ctx, l, filestate.Edit{File: file("a"), Unseen: true, Change: makes(fmt.Sprintf(long, "new"))})
		}, notOurs},
		{"splice", old, func(ctx context.Context, l *filestate.Ledger, file func(string) filestate.File) error {
			filestate.SpliceFrom(l, 1)
			version := versionOf("old a\n")
			return update(ctx, l, filestate.Edit{File: file("a"), Version: version, Change: notInMemory,
				Splice: splicesOf(filestate.Splice{At: 0, Old: []byte("old"), New: []byte("new")})})
		}, nil},
	}
}

// harmless are the steps whose failure leaves a change made.
var harmless = map[string]bool{"sync directory": true, "remove": true, "close the journal": true}

// A step that fails leaves everything as it was, and the error names the cause and the file.
func TestFailedSteps(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	causes := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE}
	for _, c := range trials() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			count := 0
			for at := 1; ; at++ { // the at-th step fails
				failed := ""
				these := causes
				if strings.Contains(c.name, "several") || !leaktest.All() {
					these = causes[at%len(causes):][:1] // each takes longer
				}
				for _, cause := range these {
					if failed = failStep(t, c, at, cause); failed == "" {
						break
					}
					count++
				}
				if failed == "" {
					break
				}
			}
			t.Logf("%d failures", count)
			least := 10 // of one cause for each step
			if leaktest.All() {
				least = 25
			}
			if count < least {
				t.Errorf("only %d failures", count)
			}
		})
	}
}

// failStep lets one step of a trial fail, and returns which; "": there are fewer.
func failStep(t *testing.T, c trial, at int, cause error) (failed string) {
	t.Helper()
	d := newKeptDesk(t, durable)
	c.setUp(d)
	before, notes := tree(t, d.dir), len(d.history(journal.Query{}))
	n := 0
	d.beforeSteps(func(step string) error {
		if n++; n == at {
			failed = step
			return cause
		}
		return c.fails(step)
	})
	err := c.run(t.Context(), d.l, d.file)
	if failed == "" {
		if err != nil {
			t.Fatalf("without a failure: %v", err)
		}
		return ""
	}
	d.beforeSteps(c.fails)
	if harmless[failed] {
		if err != nil {
			t.Errorf("%s fails (%v): %v", failed, cause, err)
		}
		return failed
	}
	e, ok := errors.AsType[*filestate.WriteError](err)
	if !ok || !errors.Is(err, cause) || !strings.HasPrefix(e.Path, d.dir) || strings.Contains(err.Error(), ".codehand-") {
		t.Fatalf("%s fails (%v): got %v, want a WriteError with the cause and the file", failed, cause, err)
	}
	if e.Reading() {
		t.Errorf("%s fails (%v): it is told as a file that cannot be read, though it was", failed, cause)
	}
	if after := tree(t, d.dir); after != before {
		t.Fatalf("%s fails (%v): \n%s became\n%s", failed, cause, before, after)
	}
	if got := d.history(journal.Query{}); len(got) != notes {
		t.Fatalf("%s fails (%v): the history is %+v", failed, cause, got)
	}
	if err := c.run(t.Context(), d.l, d.file); err != nil {
		t.Fatalf("after %s failed: %v", failed, err)
	}
	d.noTemps()
	return failed
}

// A directory that cannot be synced: the change is made, and says so.
func TestDirectoryNotSynced(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t, durable)
	d.beforeSteps(func(step string) error {
		if step == "sync directory" {
			return syscall.EIO
		}
		return nil
	})
	c := d.must(d.put("a", "x", unseen))
	if c.Durable || !errors.Is(c.SyncErr, syscall.EIO) {
		t.Errorf("the change is %+v", c)
	}
	d.holds("a", "x")
	if len(d.history(journal.Query{})) != 1 {
		t.Error("the change is not in the history")
	}
}

// A file system without the exchange: a look just before the rename is what is left.
func TestWithoutExchange(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t, durable)
	d.write("a", "0")
	d.see("a")
	foreign := false
	d.beforeSteps(func(step string) error {
		if step != "rename" {
			return nil
		}
		if foreign {
			d.write("a", "foreign")
		}
		return errors.ErrUnsupported
	})
	c := d.must(d.edit("a", "0", "1"))
	d.holds("a", "1")
	d.mustUndo(c.ID)
	d.holds("a", "0")
	tick(t, d.path("a"))
	foreign = true
	_, err := d.edit("a", "0", "2")
	if e := wantStale(t, err); string(e.New) != "foreign" {
		t.Errorf("the stale error is %+v", e)
	}
	d.holds("a", "foreign")
}

// The exchange displaced something else and cannot be reversed: nothing is removed, and the error says so.
func TestPutBackFails(t *testing.T) {
	t.Parallel()
	d := newKeptDesk(t)
	d.write("a", "old")
	d.see("a")
	d.beforeSteps(func(step string) error {
		switch step {
		case "rename":
			d.write("a", "foreign")
		case "put back":
			return syscall.EIO
		}
		return nil
	})
	_, err := d.l.Update(t.Context(), journal.By{}, filestate.Edit{File: d.file("a"), Change: makes("new")})
	e, ok := errors.AsType[*filestate.RollbackError](err)
	if !ok || len(e.Files) != 1 || !e.Files[0].Changed || !errors.Is(e.Files[0].Err, syscall.EIO) {
		t.Fatalf("got %v, want a RollbackError", err)
	}
	left := temps(t, d.dir)
	if len(left) != 1 {
		t.Fatalf("left are %v", left)
	}
	if b, err := os.ReadFile(left[0]); err != nil || string(b) != "foreign" {
		t.Errorf("left is %q, %v", b, err)
	}
	if !d.keepsContent("foreign") {
		t.Error("the journal has no copy")
	}
}
