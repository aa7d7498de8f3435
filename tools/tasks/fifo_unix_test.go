//go:build unix

package tasks_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"codehand/tools/tasks"
)

// A FIFO in the place of a file blocked its reader until a program wrote. (The test hangs then.)
func TestDirectoryOpensNoFIFO(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	for _, name := range []string{"4.json", tempFile} {
		if err := syscall.Mkfifo(filepath.Join(path, name), 0o600); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skip("there are no FIFOs here: ", err)
		}
	}
	l := tasks.New(directory(path))
	if id := create(t, l, "x"); id != "5" {
		t.Errorf("the next id is %s", id)
	}
	if b := load(t, l); len(b.Damaged) != 1 || b.Damaged[0].Reason != "it is no regular file" {
		t.Errorf("damaged: %+v", b.Damaged)
	}
	// In the place of the lock, which was made by now.
	locks, err := filepath.Glob(filepath.Join(tasks.Locks(path), "*"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("locks: %q, %v", locks, err)
	}
	if err := errors.Join(syscall.Unlink(locks[0]), syscall.Mkfifo(locks[0], 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Create(t.Context(), tasks.Draft{Subject: "x"}); err == nil {
		t.Error("a FIFO was taken for a lock")
	}
}
