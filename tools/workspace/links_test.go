package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hardLink gives the file at rel one more name.
func (f fixture) hardLink(t testing.TB, rel, more string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.path(more)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(f.path(rel), f.path(more)); err != nil {
		t.Skipf("this file system makes no hard links: %v", err)
	}
}

// SEC-10: a question about one name of a file returns the others, so that a rule about one of them is a rule about the
// file.
func TestNames(t *testing.T) {
	f := newFixture(t)
	f.write(t, "ws/secret.txt", "s")
	f.hardLink(t, "ws/secret.txt", "ws/dir/deep/h1")
	f.hardLink(t, "ws/secret.txt", "other/h2")
	f.hardLink(t, "outside/x.txt", "ws/from-outside")
	f.hardLink(t, "kept/k.txt", "ws/from-kept")
	f.link(t, "ws/soft", "dir/deep/h1")
	f.link(t, "ws/dir/round", "..")
	for _, c := range []struct{ path, want string }{
		{"secret.txt", "other/h2 ws/dir/deep/h1"},
		{"dir/deep/h1", "other/h2 ws/secret.txt"},
		{"dir/round/dir/./deep/h1", "other/h2 ws/secret.txt"},
		{"soft", "other/h2 ws/secret.txt"},
		{f.path("other/h2"), "ws/dir/deep/h1 ws/secret.txt"},
		{"from-outside", ""}, // its other name is outside, and stays unknown here
		{f.path("kept/k.txt"), "ws/from-kept"},
		{"a.txt", ""},
		{"dir", ""},
		{"missing", ""},
		{f.path("outside/x.txt"), ""},
		{"", ""},
	} {
		names, whole := f.Names(c.path)
		for i, name := range names {
			names[i], _ = strings.CutPrefix(filepath.ToSlash(name), filepath.ToSlash(f.top)+"/")
		}
		if got := strings.Join(names, " "); got != c.want || !whole {
			t.Errorf("%s: got %q, whole %v; want %q", c.path, got, whole, c.want)
		}
	}
}

// A link that is made after a walk is found at once: it changes the file that it is about.
func TestNamesAfterLink(t *testing.T) {
	f := newFixture(t)
	f.hardLink(t, "ws/a.txt", "ws/h1")
	if names, _ := f.At(f.path("ws/dir")).Names("../a.txt"); !slices.Equal(names, []string{f.path("ws/h1")}) {
		t.Fatalf("got %q", names)
	}
	f.hardLink(t, "ws/dir/b.txt", "ws/h2") // one name when it was walked
	if names, _ := f.Names("h2"); !slices.Equal(names, []string{f.path("ws/dir/b.txt")}) {
		t.Errorf("got %q", names)
	}
	if err := os.Remove(f.path("ws/h1")); err != nil {
		t.Fatal(err)
	}
	f.hardLink(t, "ws/a.txt", "ws/h3") // two names, as when it was walked
	if names, _ := f.Names("a.txt"); !slices.Equal(names, []string{f.path("ws/h3")}) {
		t.Errorf("got %q, want the new name", names)
	}
}

// One walk is good for all files for some seconds, and not longer.
func TestNamesWalkSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		walks := 0
		file, more := linked{id: fileID{1, 2}, links: 2, changed: 3}, linked{id: fileID{1, 3}, links: 3}
		walk := func() (map[fileID]*linkEntry, bool) {
			walks++
			return map[fileID]*linkEntry{
				file.id: {linked: file, names: []string{"/a", "/b"}}, more.id: {linked: more, names: []string{"/c"}},
			}, false
		}
		x := &linkIndex{now: time.Now}
		look := func(f linked, wantWalks, wantNames int, wantWhole bool) {
			t.Helper()
			names, whole := x.names(f, walk)
			if len(names) != wantNames || whole != wantWhole || walks != wantWalks {
				t.Errorf("got %q, whole %v after %d walks; want %d, %v, %d", names, whole, walks, wantNames, wantWhole, wantWalks)
			}
		}
		look(file, 1, 2, true)  // all its names were seen, though the walk did not see everything
		look(more, 1, 1, false) // a name is missing
		look(file, 1, 2, true)
		file.changed++
		look(file, 2, 2, true)
		file.changed--
		// Where a walk did not come everywhere, each file that it missed was a walk: 34 s for 230 of them.
		look(linked{id: fileID{9, 9}, links: 2}, 2, 0, false)
		look(linked{id: fileID{9, 8}, links: 2}, 2, 0, false)
		time.Sleep(linksKept)
		look(more, 2, 1, false)
		time.Sleep(time.Nanosecond)
		look(more, 3, 1, false)
	})
}

// A file whose names are all outside the roots cost a walk for each question about it.
func TestNamesWalkOnceForNothing(t *testing.T) {
	t.Parallel()
	walks := 0
	walk := func() (map[fileID]*linkEntry, bool) { walks++; return map[fileID]*linkEntry{}, true }
	x := &linkIndex{now: time.Now}
	for range 3 {
		if names, whole := x.names(linked{id: fileID{1, 1}, links: 2}, walk); len(names) > 0 || !whole {
			t.Errorf("got %q, whole %v", names, whole)
		}
	}
	if walks != 1 {
		t.Errorf("%d walks", walks)
	}
}

// What cannot be looked at may hold a name, and is said.
func TestNamesNotWhole(t *testing.T) {
	f := newFixture(t)
	f.hardLink(t, "outside/x.txt", "ws/h")
	w := linkWalk{found: map[fileID]*linkEntry{}, left: 2, whole: true}
	dir, err := os.OpenRoot(f.path("ws"))
	if err != nil {
		t.Fatal(err)
	}
	if w.directory(dir, f.path("ws"), 0); w.whole {
		t.Error("two entries of more, and it claims to have seen all")
	}
	deep := filepath.Join("ws", filepath.Join(strings.Split(strings.Repeat("d ", maxLinkDepth+1), " ")...))
	if err := os.MkdirAll(f.path(deep), 0o755); err != nil {
		t.Fatal(err)
	}
	if names, whole := f.Names("h"); whole || len(names) > 0 {
		t.Errorf("got %q, whole %v, of a tree that is too deep", names, whole)
	}
}

func TestNamesBelowUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; run it as an ordinary user")
	}
	f := newFixture(t)
	f.hardLink(t, "outside/x.txt", "ws/h")
	if err := os.Chmod(f.path("ws/dir"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(f.path("ws/dir"), 0o755) })
	if _, whole := f.Names("h"); whole {
		t.Error("a directory could not be read, and it claims to have seen all")
	}
}

// BenchmarkNames: a file with one name, which nearly all have; one with two; and the walk that finds them.
func BenchmarkNames(b *testing.B) {
	top := b.TempDir()
	for _, dir := range strings.Split("abcdefghij", "") {
		if err := os.Mkdir(filepath.Join(top, dir), 0o755); err != nil {
			b.Fatal(err)
		}
		for i := range 1000 {
			if err := os.WriteFile(filepath.Join(top, dir, strings.Repeat("f", i%50+1)+string(rune('a'+i/50))), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	s, err := Open([]string{top}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := os.Link(filepath.Join(top, "a", "fa"), filepath.Join(top, "b", "link")); err != nil {
		b.Skip(err)
	}
	for name, path := range map[string]string{"single": "b/fa", "linked": "a/fa"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.Names(path)
			}
		})
	}
	b.Run("walk10000", func(b *testing.B) {
		for b.Loop() {
			s.walkLinks()
		}
	})
}
