package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// foldingFixture is a fixture on a file system that ignores letter case.
func foldingFixture(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	if _, err := os.Lstat(f.path("ws/A.TXT")); err != nil {
		t.Skip("the directory for temporary files tells letter cases apart; set TMPDIR to one that does not, such as ext4 with chattr +F")
	}
	return f
}

// SEC-10: another spelling of a name is the name, where the disk says so.
func TestResolveInOtherCase(t *testing.T) {
	f := foldingFixture(t)
	f.write(t, "ws/Dir2/Secret.txt", "s")
	for path, want := range map[string]string{
		"A.TXT": "ws/a.txt", "DIR/B.txt": "ws/dir/b.txt", "dir2/SECRET.TXT": "ws/Dir2/Secret.txt", "Dir/Deep": "ws/dir/deep",
		"DIR/NEW.txt": "ws/dir/NEW.txt", "DIR/NEW/deep/X": "ws/dir/NEW/deep/X", "a.txt": "ws/a.txt", ".": "ws",
	} {
		if real, inside := f.Resolve(path); real != f.path(want) || !inside {
			t.Errorf("%s: got %s, inside %v; want %s", path, real, inside, f.path(want))
		}
		if !f.Folds(path) {
			t.Errorf("%s: the file system folds here", path)
		}
	}
	if !f.Same("A.TXT", "a.txt") {
		t.Error("two spellings of one file are not the same file")
	}
}

func TestFoldsNot(t *testing.T) {
	f := newFixture(t)
	if _, err := os.Lstat(f.path("ws/A.TXT")); err == nil {
		t.Skip("the directory for temporary files ignores letter case")
	}
	for _, path := range []string{"a.txt", "A.TXT", "dir/new", "dir/new/deeper/x", "dir", ".", f.path("kept/k.txt"), f.path("outside/x.txt"), ""} {
		if f.Folds(path) {
			t.Errorf("%q: the file system tells letter cases apart", path)
		}
		if real, _ := f.Resolve("DIR/x"); real != f.path("ws/DIR/x") {
			t.Errorf("got %s", real)
		}
	}
}

// One file under both spellings is what such a file system shows. Hard links look the same, in a directory that is
// another than its root.
func TestFoldsInOneDirectory(t *testing.T) {
	f := newFixture(t)
	f.hardLink(t, "ws/dir/deep/c.txt", "ws/dir/deep/C.TXT")
	f.write(t, "ws/dir/deep/123", "")
	if !f.Folds("dir/deep/c.txt") {
		t.Error("c.txt and C.TXT are one file there")
	}
	if real, _ := f.Resolve("dir/deep/C.TXT"); real != f.path("ws/dir/deep/C.TXT") {
		t.Errorf("got %s, want the name that exists", real)
	}
}

// An empty directory says nothing, and nothing is remembered about it.
func TestFoldsIsNotGuessed(t *testing.T) {
	root := leaktest.Dir(t)
	s, err := Open([]string{root}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Folds("x")
	a, _, _ := s.areas.find(root)
	if _, known := s.cases.of(a); known {
		t.Error("an empty root was judged")
	}
	if err := os.WriteFile(filepath.Join(root, "1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Folds("1"); s.cases.folds != nil {
		t.Error("a root without letters was judged")
	}
	if err := os.WriteFile(filepath.Join(root, "name"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want, _ := os.Lstat(filepath.Join(root, "NAME"))
	if got := s.Folds("1"); got != (want != nil) {
		t.Errorf("got %v", got)
	}
	if _, known := s.cases.of(a); !known {
		t.Error("the root was not remembered")
	}
}

// A directory of names without letters is read once until it changes: to ask for each of its 5,000 files whether it lies
// inside took 2.4 ms a file.
func TestFoldsReadsOnce(t *testing.T) {
	f := newFixture(t)
	f.write(t, "ws/n/1", "")
	f.write(t, "ws/n/2", "")
	dir := f.path("ws/n")
	settled := time.Now().Add(-time.Minute)
	if err := os.Chtimes(dir, settled, settled); err != nil {
		t.Fatal(err)
	}
	f.Folds("n/1") // the root is tried once
	before := f.cases.reads
	for range 10 {
		f.Resolve("n/2")
		f.Folds("n/1")
	}
	if got := f.cases.reads - before; got != 0 {
		t.Errorf("the directories were read %d times more", got)
	}
	f.hardLink(t, "ws/n/1", "ws/n/a") // one file under both spellings, as such a file system shows it
	f.hardLink(t, "ws/n/1", "ws/n/A")
	if !f.Folds("n/1") {
		t.Error("the directory has letters now, and is remembered as before")
	}
}

func TestSwapCase(t *testing.T) {
	for name, want := range map[string]string{"a.Txt": "A.tXT", "1-2": "1-2", "ÄßÖ": "äßö", "": "", "k\u212a": "Kk"} {
		if got := swapCase(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
