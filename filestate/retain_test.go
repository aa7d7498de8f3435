package filestate

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// A large save of somebody else, which is kept for him, took the room of all changes of the workspace but the newest.
func TestKeptLeavesRoomForChanges(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 200<<10)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(noise) // never fails
	j, err := OpenJournal(filepath.Join(t.TempDir(), "journal"), JournalOptions{MaxBytes: 1 << 20, Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	by := By{Workspace: "w"}
	l := New(Options{Journal: j, Fast: true})
	for _, name := range []string{"a", "b", "c"} {
		edit := Edit{File: File{root, name, filepath.Join(root.Name(), name)}, Change: func([]byte) ([]byte, error) { return noise, nil }}
		if _, err := l.Update(t.Context(), by, edit); err != nil {
			t.Fatal(err)
		}
	}
	count := func() map[string]int {
		all, err := j.History(t.Context(), Query{Kept: true, Workspace: "w"})
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, e := range all {
			n[e.Kept]++
		}
		return n
	}
	for _, c := range []struct{ bytes, kept int }{{3 << 20, 1}, {300 << 10, 1}, {300 << 10, 2}, {300 << 10, 3}, {300 << 10, 3}} {
		if err := j.keep(kindExternal, by, "/w/a", make([]byte, c.bytes)); err != nil {
			t.Fatal(err)
		}
		j.tidy(context.WithoutCancel(t.Context()))
		if n := count(); n[""] != 3 || n[kindExternal] != c.kept {
			t.Errorf("after %d bytes the journal has %v, want 3 changes and %d kept", c.bytes, n, c.kept)
		}
	}
}
