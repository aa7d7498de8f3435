package search

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// calmTree is a tree whose files were learned and found calm by an engine that watches them; the test is skipped where
// nothing tells of changes.
func calmTree(t *testing.T) (*Engine, dir) {
	t.Helper()
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("d%d/f%d", i%4, i)] = fmt.Sprintf("content of number %d\n", i)
	}
	d := newDir(t, files)
	e := remembering(t)
	if s := e.Stats(); s.Watches != 0 || e.watch != nil {
		t.Fatalf("before the first search: %+v", s)
	}
	learned(t, e, d, len(files))
	for range 3 {
		ask(t, e, d, GrepQuery{Pattern: "nothing of that kind"})
	}
	if e.watch == nil || e.Stats().Watches == 0 {
		t.Skip("nothing tells of changes here")
	}
	return e, d
}

// looks is how many files a search looked at that it need not read.
func looks(t *testing.T, e *Engine, d dir) int {
	t.Helper()
	before := e.Stats()
	ask(t, e, d, GrepQuery{Pattern: "nothing of that kind"})
	after := e.Stats()
	return after.RuledOut - before.RuledOut - (after.Calm - before.Calm)
}

func write(t *testing.T, d dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.path, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A repeated search looked at each file, which was most of what it took. It looks at those of directories in which
// something happened.
func TestCalm(t *testing.T) {
	t.Parallel()
	e, d := calmTree(t)
	if n := looks(t, e, d); n != 0 {
		t.Errorf("nothing happened, and %d files were looked at", n)
	}
	write(t, d, "d1/f1", "content of nothing 1\n")
	if n := looks(t, e, d); n != 9 { // it is itself read
		t.Errorf("one of ten files of a directory changed, and %d were looked at", n)
	}
	same(t, e, d, "after a change", GrepQuery{Pattern: "nothing 1", Mode: Lines})
	if got := ask(t, e, d, GrepQuery{Pattern: "nothing 1", Mode: Lines}); got.NLines != 1 {
		t.Errorf("what was written is not found: %+v", got)
	}
}

// A file with two names can change through the one that nobody watches. A name that is made in the tree is told of.
func TestCalmAndOtherNames(t *testing.T) {
	t.Parallel()
	e, d := calmTree(t)
	if err := os.Link(filepath.Join(d.path, "d2/f2"), filepath.Join(d.path, "d3/other")); err != nil {
		t.Skip(err)
	}
	ask(t, e, d, GrepQuery{Pattern: "nothing of that kind"})
	write(t, d, "d3/other", "content of nothing 2\n")
	same(t, e, d, "through another name", GrepQuery{Pattern: "nothing 2", Mode: Lines})
	if got := ask(t, e, d, GrepQuery{Pattern: "nothing 2", Mode: Lines}); got.NLines != 2 {
		t.Errorf("what was written is found %d times, want twice", got.NLines)
	}
}

// Where there were more events than the kernel keeps, or no room for watches, each file is looked at.
func TestCalmOverflow(t *testing.T) {
	t.Parallel()
	e, d := calmTree(t)
	for i := range 40_000 {
		if err := os.Chmod(filepath.Join(d.path, "d0", []string{"f0", "f4"}[i%2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, d, "d3/f3", "content of nothing 3\n") // its event is lost
	same(t, e, d, "after an overflow", GrepQuery{Pattern: "nothing 3", Mode: Lines})
	if n := looks(t, e, d); n > 39 {
		t.Errorf("%d files were looked at", n)
	}
	if e.watch.all == 0 {
		t.Error("nothing overflowed, so this test shows nothing")
	}
}

func TestCalmWithoutRoom(t *testing.T) {
	t.Parallel()
	e, d := calmTree(t)
	release := e.Hold()
	release() // the last session ends
	if s := e.Stats(); s.Watches != 0 || s.Dirs != 0 || e.watch != nil {
		t.Fatalf("the last session ended, and %+v is left", s)
	}
	learned(t, e, d, 40)
	if looks(t, e, d); e.watch == nil {
		t.Fatal("nothing is watched for the next session")
	}
	e.watch.mu.Lock()
	e.watch.end()
	e.watch.mu.Unlock()
	if n := looks(t, e, d); n != 40 {
		t.Errorf("nothing is watched, and %d of 40 files were looked at", n)
	}
	write(t, d, "d3/f3", "content of nothing 3\n")
	same(t, e, d, "without watches", GrepQuery{Pattern: "nothing 3", Mode: Lines})
}

// Network file systems, FUSE and overlays do not tell of everything.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	for _, kind := range []int64{unix.NFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC} {
		if trustedTypes[kind] {
			t.Errorf("%#x is trusted", kind)
		}
	}
	if !unwatchedTypes[unix.OVERLAYFS_SUPER_MAGIC] {
		t.Error("an overlay is watched")
	}
}
