package changes

import (
	"testing"
)

// With no more watches in the system, a command that made a directory had no list of its changes, and neither had any
// later one.
func TestNoMoreWatches(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.write("a", "one")
	r.write("d/f", "f")
	r.commit()
	trees := New("", "")
	defer trees.Close()
	s := trees.Begin(t.Context(), r.dir)
	if s.tree.watch == nil {
		t.Skip("the kernel does not say here what changes: the directory of the tests is on another file system")
	}
	s.tree.watch.most = len(s.tree.watch.dirs)
	r.sh("echo two >a; mkdir -p x/y; echo n >x/y/n; rm d/f")
	found := s.End(10, everything)
	if got, want := r.told(found.Changes), "M a one>two; D d/f f>; A x/y/n >n"; got != want || !found.Known {
		t.Errorf("%q, known %v; want %q", got, found.Known, want)
	}
	s.tree.scans, s.tree.known = true, false // what the system says when the watch is made again
	s = trees.Begin(t.Context(), r.dir)
	r.sh("echo three >a")
	if got := r.told(s.End(10, everything).Changes); got != "M a two>three" && got != "M a (it was not clean in git)" {
		t.Errorf("%q", got)
	}
}
