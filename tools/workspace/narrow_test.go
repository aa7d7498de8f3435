package workspace

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// What a client names only takes roots away, whatever it names, and nothing outside is reached by it.
func TestNarrow(t *testing.T) {
	f := newFixture(t)
	f.link(t, "ws/in", "dir")
	f.link(t, "ws/dir/up", "../a.txt")
	f.link(t, "ws/dir/down", "deep/c.txt")
	f.link(t, "ws/dir/to-other", "TOP/other/o.txt")
	f.link(t, "ws/out", "TOP/outside")
	f.link(t, "alias", "ws/dir")
	all := []string{"ws", "other"}
	for name, c := range map[string]struct {
		dirs, roots, unused []string
		reached, lost       []string
	}{
		"nothing":               {roots: all, reached: []string{"ws/a.txt", "other/o.txt"}},
		"all of them":           {dirs: []string{"TOP/other", "TOP/ws"}, roots: all, reached: []string{"ws/a.txt", "other/o.txt"}},
		"above all of them":     {dirs: []string{"TOP"}, roots: all, reached: []string{"ws/a.txt", "other/o.txt"}},
		"the file system":       {dirs: []string{"/"}, roots: all, reached: []string{"ws/a.txt", "other/o.txt"}},
		"outside":               {dirs: []string{"TOP/outside"}, unused: []string{"TOP/outside"}, lost: []string{"ws/a.txt", "other/o.txt", "ws"}},
		"a prefix":              {dirs: []string{"TOP/w", "TOP/ws-evil"}, unused: []string{"TOP/w", "TOP/ws-evil"}, lost: []string{"ws/a.txt", "other/o.txt", "ws"}},
		"readable only":         {dirs: []string{"TOP/kept"}, unused: []string{"TOP/kept"}, lost: []string{"ws/a.txt", "other/o.txt", "ws"}},
		"no path":               {dirs: []string{"", "https://x/", `\\host\share`, "file://host/x"}, unused: []string{"", "https://x/", `\\host\share`, "file://host/x"}, lost: []string{"ws/a.txt", "other/o.txt", "ws"}},
		"one":                   {dirs: []string{"TOP/ws"}, roots: []string{"ws"}, reached: []string{"ws/a.txt"}, lost: []string{"other/o.txt", "ws/dir/to-other"}},
		"a URL":                 {dirs: []string{"file://TOP/ws"}, roots: []string{"ws"}, lost: []string{"other/o.txt"}},
		"one and outside":       {dirs: []string{"TOP/outside", "TOP/ws"}, roots: []string{"ws"}, unused: []string{"TOP/outside"}, lost: []string{"other/o.txt"}},
		"a part":                {dirs: []string{"TOP/ws/dir"}, roots: []string{"ws/dir"}, reached: []string{"ws/dir/b.txt", "ws/dir/deep/c.txt", "ws/dir/down"}, lost: []string{"ws/a.txt", "ws/dir/up", "ws/dir/to-other", "other/o.txt", "ws"}},
		"a part by a link":      {dirs: []string{"TOP/ws/in"}, roots: []string{"ws/dir"}, reached: []string{"ws/dir/b.txt"}, lost: []string{"ws/a.txt"}},
		"a link from outside":   {dirs: []string{"TOP/alias"}, unused: []string{"TOP/alias"}, lost: []string{"ws/dir/b.txt"}},
		"it, looked at":         {dirs: []string{Real(f.path("alias")), Real("file://" + f.path("alias/deep"))}, roots: []string{"ws/dir", "ws/dir/deep"}, reached: []string{"ws/dir/b.txt"}, lost: []string{"ws/a.txt"}},
		"a part twice":          {dirs: []string{"TOP/ws/dir", "TOP/ws/in", "TOP/ws/./dir/"}, roots: []string{"ws/dir"}, lost: []string{"ws/a.txt"}},
		"a part and another":    {dirs: []string{"TOP/other", "TOP/ws/dir/deep"}, roots: []string{"other", "ws/dir/deep"}, reached: []string{"other/o.txt", "ws/dir/deep/c.txt"}, lost: []string{"ws/dir/b.txt"}},
		"a link that leads out": {dirs: []string{"TOP/ws/out"}, unused: []string{"TOP/ws/out"}, lost: []string{"ws/a.txt"}},
		"a file":                {dirs: []string{"TOP/ws/a.txt"}, unused: []string{"TOP/ws/a.txt"}, lost: []string{"ws/a.txt", "other/o.txt", "ws"}},
		"a link to a file":      {dirs: []string{"TOP/ws/dir/up"}, unused: []string{"TOP/ws/dir/up"}, lost: []string{"ws/a.txt", "other/o.txt", "ws"}},
		"a file and a part":     {dirs: []string{"TOP/ws/a.txt", "TOP/ws/dir"}, roots: []string{"ws/dir"}, unused: []string{"TOP/ws/a.txt"}, reached: []string{"ws/dir/b.txt"}, lost: []string{"ws/a.txt"}},
		"missing":               {dirs: []string{"TOP/ws/none"}, roots: []string{"ws/none"}, lost: []string{"ws/a.txt", "ws/none/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			n, unused := f.Narrowing(f.full(c.dirs))
			if !slices.Equal(unused, f.full(c.unused)) {
				t.Errorf("unused %q, want %q", unused, f.full(c.unused))
			}
			s := f.Narrow(n)
			var roots []string
			for _, root := range c.roots {
				roots = append(roots, f.path(root))
			}
			if !slices.Equal(s.Roots(), roots) {
				t.Errorf("roots %q, want %q", s.Roots(), roots)
			}
			if _, inside := s.Resolve(s.Cwd()); !inside && c.roots != nil && c.roots[0] != "ws/none" {
				t.Errorf("the cwd %s is outside", s.Cwd())
			}
			for _, path := range c.reached {
				if got := reach(s, f.path(path), Write); got != "ok" {
					t.Errorf("%s: %s", path, got)
				}
			}
			for _, path := range c.lost {
				if got := reach(s, f.path(path), Read); got != "outside" && got != "missing" {
					t.Errorf("%s: %s, want outside", path, got)
				}
			}
			if got := reach(s, f.path("kept/k.txt"), Read); got != "ok" {
				t.Errorf("what may be read is not: %s", got)
			}
			for _, path := range []string{"outside/x.txt", "ws-evil/x.txt", "ws/out/x.txt"} {
				if got := reach(s, f.path(path), Read); got != "outside" {
					t.Errorf("%s: %s, want outside", path, got)
				}
			}
		})
	}
}

// Every path was refused because a part of it was a file, when a client had opened that file: what is wrong is named now.
func TestNarrowToAFile(t *testing.T) {
	f := newFixture(t)
	n, _ := f.Narrowing([]string{f.path("ws/a.txt")})
	s := f.Narrow(n)
	for _, path := range []string{"ws/a.txt", "ws/dir", "ws/dir/b.txt", "other/none"} {
		_, err := s.Open(f.path(path), Read)
		out, ok := errors.AsType[*OutsideError](err)
		if !ok || !slices.Equal(out.Wanted, []string{"no directory: " + f.path("ws/a.txt")}) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// full puts the parent directory into paths.
func (f fixture) full(paths []string) []string {
	var all []string
	for _, p := range paths {
		all = append(all, strings.ReplaceAll(p, "TOP", f.top))
	}
	return all
}

func reach(s *Space, path string, a Access) string {
	p, err := s.Open(path, a)
	if err == nil {
		_ = p.Dir.Close()
	}
	return kind(err)
}

// A part of a root that was replaced by a link leads nowhere, not even to another place in the root; a new directory in its
// place is used.
func TestNarrowAndReplaced(t *testing.T) {
	f := newFixture(t)
	n, _ := f.Narrowing([]string{f.path("ws/dir/deep")})
	s := f.Narrow(n)
	if err := os.RemoveAll(f.path("ws/dir/deep")); err != nil {
		t.Fatal(err)
	}
	if got := reach(s, f.path("ws/dir/deep/c.txt"), Read); got != "missing" {
		t.Errorf("gone: %s", got)
	}
	for _, target := range []string{"..", "TOP/ws", "TOP/outside"} {
		f.link(t, "ws/dir/deep", target)
		for _, path := range []string{"b.txt", "a.txt", "x.txt", "new"} {
			if got := reach(s, f.path("ws/dir/deep/"+path), Write); got != "outside" {
				t.Errorf("a link to %s: %s: %s", target, path, got)
			}
		}
		if err := os.Remove(f.path("ws/dir/deep")); err != nil {
			t.Fatal(err)
		}
	}
	f.write(t, "ws/dir/deep/again/c.txt", "new")
	if text, err := (fixture{Space: s}).read(f.path("ws/dir/deep/again/c.txt")); err != nil || text != "new" {
		t.Errorf("made again: %q, %v", text, err)
	}
}

// What a session had besides the roots stays with it, and the index of hard links of few roots never answers for all.
func TestNarrowKeepsTheRest(t *testing.T) {
	f := newFixture(t)
	f.write(t, "plan.md", "plan")
	if err := os.Link(f.path("ws/a.txt"), f.path("ws/dir/hard.txt")); err != nil {
		t.Skip(err)
	}
	n, _ := f.Narrowing([]string{f.path("ws/dir")})
	s := f.Writable(f.path("plan.md")).At(f.path("ws/dir/deep")).Narrow(n)
	if got := reach(s, f.path("plan.md"), Write); got != "ok" {
		t.Errorf("the plan file: %s", got)
	}
	if s.Cwd() != f.path("ws/dir/deep") {
		t.Errorf("cwd %s", s.Cwd())
	}
	if names, _ := s.Names("../hard.txt"); len(names) != 0 {
		t.Errorf("names outside the part: %q", names)
	}
	if names, whole := f.Names("dir/hard.txt"); !whole || !slices.Equal(names, []string{f.path("ws/a.txt")}) {
		t.Errorf("names in all roots: %q, whole %v", names, whole)
	}
}
