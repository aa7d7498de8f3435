package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestRefusedRoots(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := []string{"", file, filepath.Join(file, "x"), filepath.Join(t.TempDir(), "missing"), string(filepath.Separator)}
	if runtime.GOOS == "linux" {
		refused = append(refused, "/proc", "/proc/self", "/sys", "/sys/kernel", "/dev", "/dev/shm", "/etc", "/etc/..", "/proc/self/root", "/etc/ssl")
	}
	for _, root := range refused {
		if s, err := Open([]string{t.TempDir(), root}, Options{}); err == nil {
			_ = s.Close()
			t.Errorf("root %q was taken", root)
		}
	}
}

func TestNoRoots(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(nil, Options{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"x", ".", dir, "/"} {
		if _, err := s.Open(path, Read); kind(err) != "outside" {
			t.Errorf("Open(%q): %v, want *OutsideError", path, err)
		}
	}
	if len(s.Roots()) != 0 || s.Cwd() != dir {
		t.Errorf("roots %v, cwd %s", s.Roots(), s.Cwd())
	}
}

// A root that was given through a link is known by its canonical path, and both spellings work.
func TestRootThroughLink(t *testing.T) {
	f := newFixture(t)
	f.link(t, "alias", "TOP/ws")
	s, err := Open([]string{f.path("alias"), f.path("ws"), f.path("alias")}, Options{Cwd: f.path("alias/dir")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Roots(); !slices.Equal(got, []string{f.path("ws")}) {
		t.Errorf("roots %v", got)
	}
	if s.Cwd() != f.path("ws/dir") {
		t.Errorf("cwd %s is not canonical", s.Cwd())
	}
	for _, path := range []string{f.path("alias/a.txt"), f.path("ws/a.txt"), "../a.txt"} {
		real, inside := s.Resolve(path)
		if real != f.path("ws/a.txt") || !inside {
			t.Errorf("Resolve(%s) = %s, %v", path, real, inside)
		}
	}
}

// The spelling of a root that lies inside another root is a link like any other: when it is changed later, the path
// means what the disk says.
func TestSpellingInsideAnotherRoot(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/l", "TOP/other")
	s, err := Open([]string{f.path("ws"), f.path("ws/l")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if real, _ := s.Resolve("l/o.txt"); real != f.path("other/o.txt") {
		t.Errorf("before: %s", real)
	}
	if err := os.Remove(f.path("ws/l")); err != nil {
		t.Fatal(err)
	}
	f.link(t, "ws/l", "dir")
	if real, _ := s.Resolve("l/b.txt"); real != f.path("ws/dir/b.txt") {
		t.Errorf("after: %s", real)
	}
}

// A root that was deleted and made again is the new one; one that became an outward link is refused (SEC-06).
func TestReplacedRoot(t *testing.T) {
	f := newFixture(t)
	if err := os.Rename(f.path("ws"), f.path("moved")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open("a.txt", Read); kind(err) != "missing" {
		t.Errorf("gone root: %v, want *MissingError", err)
	}
	if _, err := f.Open("new.txt", Write); kind(err) != "missing" {
		t.Errorf("write below a gone root: %v, want *MissingError", err)
	}
	f.write(t, "ws/a.txt", "new")
	if text, err := f.read("a.txt"); err != nil || text != "new" {
		t.Errorf("new root: %q, %v", text, err)
	}
	if err := os.RemoveAll(f.path("ws")); err != nil {
		t.Fatal(err)
	}
	f.link(t, "ws", "TOP/outside")
	for _, a := range []Access{Read, Write} {
		if _, err := f.Open("x.txt", a); kind(err) != "outside" {
			t.Errorf("root became a link: %v, want *OutsideError", err)
		}
	}
	if err := os.Remove(f.path("ws")); err != nil {
		t.Fatal(err)
	}
	f.write(t, "ws", "a file")
	if _, err := f.Open("x.txt", Read); err == nil {
		t.Error("a root that became a file was opened")
	}
}

// The whole parent of a root was replaced by a link: what is at the same path now is another place.
func TestReplacedParentOfRoot(t *testing.T) {
	f := newFixture(t)
	f.write(t, "p/root/a.txt", "a")
	f.write(t, "outside/root/a.txt", secret)
	s, err := Open([]string{f.path("p/root")}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Rename(f.path("p"), f.path("q")); err != nil {
		t.Fatal(err)
	}
	f.link(t, "p", "TOP/outside")
	if _, err := s.Open("a.txt", Read); kind(err) != "outside" {
		t.Errorf("got %v, want *OutsideError", err)
	}
}

func TestReadableAreas(t *testing.T) {
	f := newFixture(t)
	later := f.path("state/results")
	s := f.Readable(later, f.path("ws/dir"), f.path("other"))
	if _, err := s.Open(filepath.Join(later, "r"), Read); kind(err) != "missing" {
		t.Errorf("an area that does not exist yet: %v, want *MissingError", err)
	}
	f.write(t, "state/results/r", "r")
	f.write(t, "state/secret", secret)
	g := fixture{Space: s, top: f.top}
	if text, err := g.read(filepath.Join(later, "r")); err != nil || text != "r" {
		t.Errorf("got %q, %v", text, err)
	}
	for path, want := range map[string]string{
		filepath.Join(later, "r"):   "outside",
		filepath.Join(later, "new"): "outside",
		f.path("state/secret"):      "outside",
		f.path("ws/dir/b.txt"):      "outside", // readable inside a root: never changed
		f.path("ws/a.txt"):          "ok",
		f.path("other/o.txt"):       "ok", // a root stays a root
	} {
		p, err := s.Open(path, Write)
		if got := kind(err); got != want {
			t.Errorf("Open(%s, Write): %v, want %s", path, err, want)
		}
		if err == nil {
			_ = p.Dir.Close()
		}
	}
	f.link(t, "ws/into", "dir/b.txt") // reached without leaving the root
	if _, err := s.Open("into", Write); kind(err) != "outside" {
		t.Errorf("a link into a readable area: %v, want *OutsideError", err)
	}
	if _, inside := s.Resolve(filepath.Join(later, "r")); inside {
		t.Error("a readable area counts as inside")
	}
	if _, err := f.Open(filepath.Join(later, "r"), Read); kind(err) != "outside" {
		t.Error("Readable changed the Space that it was called on")
	}
}

func TestAtAndRel(t *testing.T) {
	f := newFixture(t)
	s := f.At(f.path("ws/dir"))
	if text, err := (fixture{Space: s, top: f.top}).read("b.txt"); err != nil || text != "b" {
		t.Errorf("got %q, %v", text, err)
	}
	if f.At("relative").Cwd() != f.Cwd() {
		t.Error("a relative cwd was taken")
	}
	for path, want := range map[string]string{
		f.path("ws/dir"):            ".",
		f.path("ws/dir/b.txt"):      "b.txt",
		f.path("ws/dir/deep/c.txt"): filepath.Join("deep", "c.txt"),
		f.path("ws/dir-evil/x"):     f.path("ws/dir-evil/x"),
		f.path("ws/a.txt"):          f.path("ws/a.txt"),
		"b.txt":                     "b.txt",
	} {
		if got := s.Rel(path); got != want {
			t.Errorf("Rel(%s) = %s, want %s", path, got, want)
		}
	}
	gone := f.At(f.path("ws/vanished"))
	if _, err := gone.Open("x.txt", Read); kind(err) != "missing" {
		t.Errorf("cwd gone: %v, want *MissingError", err)
	}
}

func TestResolve(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/in", "dir/b.txt")
	f.link(t, "ws/out", "../outside/../outside/x.txt")
	f.link(t, "ws/loop", "loop")
	for path, want := range map[string]struct {
		real   string
		inside bool
	}{
		"in":             {f.path("ws/dir/b.txt"), true},
		"dir/new/x":      {f.path("ws/dir/new/x"), true},
		".":              {f.path("ws"), true},
		"out":            {f.path("outside/x.txt"), false},
		"loop":           {f.path("ws/loop"), false},
		"../outside":     {f.path("outside"), false},
		`\\host\x`:       {`\\host\x`, false},
		"":               {"", false},
		"a.txt/x":        {f.path("ws/a.txt/x"), false},
		f.path("kept/k"): {f.path("kept/k"), false},
	} {
		real, inside := f.Resolve(path)
		if real != want.real || inside != want.inside {
			t.Errorf("Resolve(%q) = %s, %v, want %s, %v", path, real, inside, want.real, want.inside)
		}
		if f.Inside(path) != want.inside {
			t.Errorf("Inside(%q) is not %v", path, want.inside)
		}
	}
}

func TestSame(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/link", "a.txt")
	f.link(t, "ws/d", "dir")
	if err := os.Link(f.path("ws/a.txt"), f.path("ws/hard")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"a.txt", f.path("ws/a.txt"), true},
		{"a.txt", "link", true},
		{"a.txt", "hard", true},
		{"a.txt", "dir/b.txt", false},
		{"new", "./dir/../new", true},
		{"dir/new", "d/new", true},
		{"new", "a.txt", false},
		{"/etc/passwd", "/etc/../etc/passwd", true},
	} {
		if got := f.Same(c.a, c.b); got != c.want {
			t.Errorf("Same(%s, %s) = %v", c.a, c.b, got)
		}
	}
}
