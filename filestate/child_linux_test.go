package filestate_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// childLimited may write files of 64 KiB only, tries to write a larger one, and says how that failed.
func childLimited(l *filestate.Ledger, path string) error {
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	err := childUpdate(l, path, func(old []byte) ([]byte, error) { return bytes.Repeat([]byte("x"), 128<<10), nil })
	e, ok := errors.AsType[*filestate.WriteError](err)
	if !ok {
		return fmt.Errorf("got %v, want a WriteError", err)
	}
	say(fmt.Sprintf("%s: %s: %v", e.Path, e.Step, e.Err))
	return nil
}

// A write that fails in the middle leaves the old content and nothing beside it.
func TestFileTooLargeForTheSystem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("a", "old\n")
	cmd, lines := startChild(t, "limited", d.path("a"), t.TempDir(), "")
	lines.Scan()
	if want := d.path("a") + ": write: file too large"; lines.Text() != want {
		t.Errorf("the child says %q, want %q", lines.Text(), want)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	d.holds("a", "old\n")
	d.noTemps()
}

// A full disk shows before anything has changed, whichever of several files does not fit.
func TestDiskFull(t *testing.T) {
	d := newDesk(t, durable)
	if err := syscall.Mount("tmpfs", d.dir, "tmpfs", 0, "size=200k"); err != nil {
		lacks(t, "mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	d.write("a", "a\n")
	d.write("b", "b\n")
	d.see("a")
	d.see("b")
	big := func([]byte) ([]byte, error) { return bytes.Repeat([]byte("x"), 120<<10), nil }
	_, err := d.l.Update(t.Context(), journal.By{},
		filestate.Edit{File: d.file("a"), Change: big},
		filestate.Edit{File: d.file("new/b"), Change: big})
	e, ok := errors.AsType[*filestate.WriteError](err)
	if !ok || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), ".codehand-") {
		t.Fatalf("got %v, want a WriteError for a full disk that does not name the temporary file", err)
	}
	if e.Path != d.path("new/b") || e.Step != "write" {
		t.Errorf("the error names %s and step %q", e.Path, e.Step)
	}
	d.holds("a", "a\n")
	d.holds("b", "b\n")
	d.noTemps()
	if _, err := os.Stat(d.path("new")); err == nil {
		t.Error("the directory that was made for the new file is still there")
	}
	d.must(d.edit("a", "a", "still works"))
}

// lacks passes a test over that needs the rights of root; in CI, where root runs the tests, it fails.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" && os.Geteuid() == 0 {
		t.Fatalf(format, args...)
	}
	t.Skipf(format+"; run the tests as root to have this case", args...)
}
