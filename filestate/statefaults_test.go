package filestate_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"codehand/filestate"
	"codehand/filestate/journal"
)

// A full or read-only state directory read as if the user's own disk were: the refusal named the file and the cause, and
// people freed space in the wrong place.
func TestStateDirectoryFails(t *testing.T) {
	t.Parallel()
	change := func(t *testing.T, o filestate.Options, g *gate, broken string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "a")
		file, err := fileAt(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		l := filestate.New(o)
		if broken != "" {
			g.beforeSteps(l, func(step string) error {
				if step == broken {
					return syscall.ENOSPC
				}
				return nil
			})
		}
		_, err = l.Update(t.Context(), journal.By{}, filestate.Edit{File: file, Change: func([]byte) ([]byte, error) { return []byte("x"), nil }})
		failed, ok := errors.AsType[*filestate.WriteError](err)
		if !ok {
			t.Fatalf("got %v, want a WriteError", err)
		}
		errno, _ := errors.AsType[syscall.Errno](err)
		if got, want := failed.Err.Error(), "state directory: "+errno.Error(); got != want {
			t.Errorf("the cause is %q, want %q", got, want)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("the file was made")
		}
	}
	for _, step := range []string{"note in the journal", "write to the journal", "sync the journal"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			j, g := openGated(t, filepath.Join(t.TempDir(), "journal"))
			change(t, filestate.Options{Journal: j}, g, step)
		})
	}
	t.Run("lock", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		change(t, filestate.Options{Dir: filepath.Join(dir, "locks")}, nil, "")
	})
}
