package journal

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"codehand/filestate/disk"
)

// A kept content of another program used up the limit when it was large: all changes of the workspace but the newest
// were dropped.
func TestKeptLeavesRoomForChanges(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 200<<10)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(noise) // never fails
	j, err := Open(filepath.Join(t.TempDir(), "journal"), Options{MaxBytes: 1 << 20, Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	by := By{Workspace: "w"}
	for _, path := range []string{"/w/a", "/w/b", "/w/c"} {
		change, err := j.Begin(by, nil, []Part{{Path: path, New: noise, After: disk.DigestOf(noise)}})
		if err != nil {
			t.Fatal(err)
		}
		change.Done(t.Context())
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
		if err := j.Keep(KindExternal, by, "/w/a", make([]byte, c.bytes)); err != nil {
			t.Fatal(err)
		}
		j.tidy(context.WithoutCancel(t.Context()))
		if n := count(); n[""] != 3 || n[KindExternal] != c.kept {
			t.Errorf("after %d bytes the journal has %v, want 3 changes and %d kept", c.bytes, n, c.kept)
		}
	}
}
