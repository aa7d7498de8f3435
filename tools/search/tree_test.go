package search

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/search/ignore"
)

// searched gives the names of the files with an x, in path order.
func searched(t *testing.T, d dir, s Scope) []string {
	t.Helper()
	return d.names(d.grep(t, GrepQuery{Pattern: "x", Mode: Count, Scope: s}).Files)
}

// ofNames makes files whose content is an x.
func ofNames(names ...string) map[string]string {
	files := map[string]string{}
	for _, n := range names {
		files[n] = "x\n"
	}
	return files
}

func TestIgnoreFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what  string
		files map[string]string // beside a, b, sub/a, sub/b
		want  []string
	}{
		{"none", nil, []string{"a", "b", "sub/a", "sub/b"}},
		{".gitignore without a repository", map[string]string{".gitignore": "/a"}, []string{"b", "sub/a", "sub/b"}},
		{"the nearer file decides", map[string]string{".gitignore": "a", "sub/.gitignore": "!a"}, []string{"b", "sub/a", "sub/b"}},
		{"a stronger kind of a parent beats a nearer weaker one", map[string]string{".ignore": "!a", "sub/.gitignore": "a"}, []string{"a", "b", "sub/a", "sub/b"}},
		{".rgignore beats .ignore", map[string]string{".rgignore": "!a", ".ignore": "a\nb"}, []string{"a", "sub/a"}},
		{"an ignored directory is not entered", map[string]string{".gitignore": "sub/\n!sub/a"}, []string{"a", "b"}},
		{"what is in a directory can be kept", map[string]string{".gitignore": "sub/*\n!sub/a"}, []string{"a", "b", "sub/a"}},
		{"exclude", map[string]string{".git/info/exclude": "a"}, []string{"b", "sub/b"}},
		{".gitignore beats exclude", map[string]string{".git/info/exclude": "a", ".gitignore": "!a"}, []string{"a", "b", "sub/a", "sub/b"}},
		{"rules of an outer repository do not reach into an inner one", map[string]string{".gitignore": "a", ".git/info/exclude": "b", "sub/.git/": ""}, []string{"sub/a", "sub/b"}},
		{"nor into a work tree, whose .git is a file", map[string]string{".gitignore": "a", "sub/.git": "gitdir: /nowhere"}, []string{"b", "sub/a", "sub/b"}},
		{"nor into one of jj", map[string]string{".gitignore": "a", "sub/.jj/": ""}, []string{"b", "sub/a", "sub/b"}},
		{".ignore does", map[string]string{".ignore": "a", "sub/.git/": ""}, []string{"b", "sub/b"}},
		{"version control is never searched", ofNames(".git/x", ".svn/x", "sub/.hg/x", ".bzr", ".jj/x", ".sl/x"), []string{"a", "b", "sub/a", "sub/b"}},
	} {
		d := newDir(t, ofNames("a", "b", "sub/a", "sub/b"))
		for name, text := range c.files {
			d.write(t, name, text)
		}
		got := searched(t, d, Scope{Globs: []string{"!.gitignore", "!.ignore", "!.rgignore"}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
}

func TestIgnoredIsSearchedOnDemand(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "build/a", "c.o"))
	d.write(t, ".gitignore", "build\n*.o\nx")
	if got, want := searched(t, d, Scope{Ignored: true, Globs: []string{"a", "*.o"}}), []string{"a", "build/a", "c.o"}; !slices.Equal(got, want) {
		t.Errorf("Ignored: got %v, want %v", got, want)
	}
	if got, want := searched(t, d, Scope{Globs: []string{"*.o", "a"}}), []string{"a", "c.o"}; !slices.Equal(got, want) {
		t.Errorf("a glob that names an ignored file: got %v, want %v (but no ignored directory)", got, want)
	}
	if got := searched(t, d, Scope{Place: d.at("build")}); !slices.Equal(got, []string{"build/a"}) {
		t.Errorf("an ignored directory as place: got %v, want what is in it", got)
	}
	if got := searched(t, d, Scope{Place: d.at("c.o")}); !slices.Equal(got, []string{"c.o"}) {
		t.Errorf("an ignored file as place: got %v, want it", got)
	}
}

// Rules between the root and the place of a query apply; those above the root only inside a repository, and if allowed.
func TestIgnoreAbove(t *testing.T) {
	t.Parallel()
	names := func(d dir, o Options, p Place) []string {
		return d.names(d.grepWith(t, o, GrepQuery{Pattern: "x", Mode: Count, Scope: Scope{Place: p}}).Files)
	}
	top := newDir(t, ofNames("root/a", "root/b", "root/sub/deep/a", "root/sub/deep/b", "root/sub/deep/c"))
	top.write(t, "root/sub/.gitignore", "b")
	top.write(t, ".gitignore", "a")
	inner, err := top.root.OpenRoot("root")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	root := dir{top.path + "/root", inner}
	deep := root.at("sub/deep")
	if got, want := names(root, Options{}, deep), []string{"sub/deep/a", "sub/deep/c"}; !slices.Equal(got, want) {
		t.Errorf("below the root: got %v, want %v", got, want)
	}
	if got, want := names(root, Options{Outside: true}, deep), []string{"sub/deep/a", "sub/deep/c"}; !slices.Equal(got, want) {
		t.Errorf("no repository: got %v, want %v", got, want)
	}
	top.write(t, ".git/info/exclude", "c")
	if got, want := names(root, Options{Outside: true}, deep), []string{}; !slices.Equal(got, want) {
		t.Errorf("in a repository: got %v, want %v", got, want)
	}
	if got, want := names(root, Options{}, deep), []string{"sub/deep/a", "sub/deep/c"}; !slices.Equal(got, want) {
		t.Errorf("in a repository, but not outside: got %v, want %v", got, want)
	}
}

func TestIgnoreGlobal(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "b", "c"))
	home := newDir(t, map[string]string{"xdg/git/ignore": "a", "mine": "b", "other": "c"})
	names := func() []string {
		return d.names(d.grepWith(t, Options{Home: home.path, ConfigHome: home.path + "/xdg"}, GrepQuery{Pattern: "x", Mode: Count}).Files)
	}
	if got := names(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("git's default place: got %v, want b and c", got)
	}
	home.write(t, "xdg/git/config", "[user]\n\texcludesfile = x\n[core]\n\tExcludesFile = "+home.path+"/other\n")
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("of the configuration: got %v, want a and b", got)
	}
	home.write(t, ".gitconfig", "[core] excludesFile = \"~/mine\"\n")
	if got := names(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("of ~/.gitconfig: got %v, want a and c", got)
	}
}

// A work tree's exclude file is that of its main repository.
func TestIgnoreExcludeOfWorktree(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{
		"main/.git/info/exclude": "a", "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n", "w/a": "x", "w/b": "x",
		"evil/.git": "gitdir: ../elsewhere\n", "evil/a": "x", "elsewhere/info/exclude": "a",
	})
	for name, want := range map[string][]string{"w": {"w/b"}, "evil": {"evil/a"}} {
		a := d.grepWith(t, Options{Outside: true}, GrepQuery{Pattern: "x", Mode: Count, Scope: Scope{Place: d.at(name)}})
		if got := d.names(a.Files); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestGlobsAndTypes(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a.go", "b.ts", "c.tsx", "sub/a.go", "sub/b.md", "vendor/a.go", "#x", "!y", "{z}", "Makefile"))
	for _, c := range []struct {
		globs, types []string
		want         []string
	}{
		{[]string{"*.go"}, nil, []string{"a.go", "sub/a.go", "vendor/a.go"}},
		{[]string{"*.{ts,tsx}"}, nil, []string{"b.ts", "c.tsx"}},
		{[]string{"*.go", "!vendor"}, nil, []string{"a.go", "sub/a.go"}},
		{[]string{"!vendor", "!*.go", "!{#,!}*", "!Make*"}, nil, []string{"b.ts", "c.tsx", "sub/b.md", "{z}"}},
		{[]string{"/*.go"}, nil, []string{"a.go"}},
		{[]string{"sub/**"}, nil, []string{"sub/a.go", "sub/b.md"}},
		{[]string{"#x"}, nil, []string{"#x"}},
		{[]string{`\{z\}`}, nil, []string{"{z}"}},
		{[]string{"{a,{b,c}}.{go,ts}*"}, nil, []string{"a.go", "b.ts", "c.tsx", "sub/a.go", "vendor/a.go"}},
		{nil, []string{"go"}, []string{"a.go", "sub/a.go", "vendor/a.go"}},
		{nil, []string{"make", "md"}, []string{"Makefile", "sub/b.md"}},
		{[]string{"sub/*"}, []string{"go"}, []string{"sub/a.go"}},
		{[]string{""}, nil, []string{"!y", "#x", "Makefile", "a.go", "b.ts", "c.tsx", "sub/a.go", "sub/b.md", "vendor/a.go", "{z}"}},
	} {
		if got := searched(t, d, Scope{Globs: c.globs, Types: c.types}); !slices.Equal(got, c.want) {
			t.Errorf("globs %q, types %q: got %v, want %v", c.globs, c.types, got, c.want)
		}
	}
	many := "{" + strings.Repeat("a,", 64) + "a}"
	if _, err := newFilter([]string{many}, nil); !is[*PatternError](err) {
		t.Errorf("65 alternatives: got %v, want a PatternError", err)
	}
}

func TestTypesEqualRipgrep(t *testing.T) {
	t.Parallel()
	rg := needRipgrep(t)
	ours := fileTypes()
	for line := range strings.Lines(string(rg.run(t.TempDir(), "--type-list"))) {
		name, globs, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		want := strings.Split(globs, ", ")
		if rg.version == 15 && !slices.Equal(ours[name], want) || ours[name] == nil {
			t.Errorf("type %s: %q, ripgrep has %q", name, ours[name], want)
		}
	}
}

func TestSkipAndOmit(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "secret/a", "secret/deep/b", "keys/id", "keys/id.pub", "denied", "sub/.env"))
	if err := os.Link(filepath.Join(d.path, "denied"), filepath.Join(d.path, "other")); err != nil {
		t.Fatal(err)
	}
	denied := fileStatOf(t, d, "denied")
	var asked sync.Map
	s := Scope{
		Skip: func(path string) bool {
			asked.Store(d.rel(path), true)
			return strings.Contains(path, "secret") || strings.HasSuffix(path, "denied")
		},
		SkipID: func(dev, ino uint64) bool { return dev == denied.dev && ino == denied.ino },
		Omit:   ignore.Parse([]byte("id*\n!*.pub\n.env")),
	}
	for _, mode := range []Mode{FilesOnly, Lines, Count} {
		a := d.grep(t, GrepQuery{Pattern: "x", Mode: mode, Scope: s})
		if got, want := d.names(a.Files), []string{"a", "keys/id.pub"}; !slices.Equal(got, want) || a.NFiles != 2 || a.NLines != 2 {
			t.Errorf("mode %d: got %v (%d, %d), want %v", mode, got, a.NFiles, a.NLines, want)
		}
		if a.Coverage.Omitted.N != 2 || !slices.Equal(a.Coverage.Omitted.Paths, []string{d.path + "/keys/id", d.path + "/sub/.env"}) || !a.Coverage.Complete {
			t.Errorf("mode %d: omitted %+v, want the key and .env; complete", mode, a.Coverage.Omitted)
		}
	}
	if _, below := asked.Load("secret/a"); below {
		t.Error("Skip was asked about a file in a directory that it refused: the directory was entered")
	}
	if a := d.files(t, FileQuery{Pattern: "**", Scope: s}); a.N != 2 {
		t.Errorf("Files: got %+v, want 2 files", a)
	}
	if a := d.grep(t, GrepQuery{Pattern: "x", Scope: Scope{Place: d.at("denied"), Skip: s.Skip}}); a.NFiles != 0 {
		t.Errorf("a denied file as place: got %d files, want none", a.NFiles)
	}
}

func fileStatOf(t *testing.T, d dir, name string) stat {
	t.Helper()
	info, err := os.Lstat(filepath.Join(d.path, name))
	if err != nil {
		t.Fatal(err)
	}
	return fileStat(info)
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything; run as an ordinary user")
	}
	d := newDir(t, ofNames("a", "dir/b", "file"))
	for _, name := range []string{"dir", "file"} {
		full := filepath.Join(d.path, name)
		if err := os.Chmod(full, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(full, 0o755) })
	}
	a := d.grep(t, GrepQuery{Pattern: "x"})
	if got := a.Coverage.Unreadable; got.N != 2 || !slices.Equal(got.Paths, []string{d.path + "/dir", d.path + "/file"}) || a.NFiles != 1 || !a.Coverage.Complete {
		t.Errorf("got %+v, want the directory and the file as unreadable, and the answer complete", a.Coverage)
	}
}

// A time-out is an answer: what was found, and what was not visited. A worker that hangs is left behind.
func TestTimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDir(t, ofNames("a", "b/c", "d/e", "f"))
		e := New(Options{Workers: 1})
		var slow atomic.Bool
		start := time.Now()
		a, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Mode: Lines, Within: 3 * time.Second, Scope: Scope{Place: d.at(""), Skip: func(path string) bool {
			if strings.HasSuffix(path, "/f") && !slow.Swap(true) {
				time.Sleep(time.Minute)
			}
			return false
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second+hangWait {
			t.Errorf("took %v, want the time given and %v for a worker that hangs", took, hangWait)
		}
		if a.Coverage.Complete || a.Coverage.Why != Time || a.Exact {
			t.Errorf("coverage %+v, exact %v; want incomplete for time", a.Coverage, a.Exact)
		}
		if got := d.names(a.Files); !slices.Equal(got, []string{"a"}) {
			t.Errorf("found %v, want a", got)
		}
		if got := a.Coverage.Left; got.N != 2 || !slices.Equal(got.Paths, []string{d.path + "/b", d.path + "/d"}) {
			t.Errorf("left %+v, want both directories", got)
		}
		time.Sleep(time.Minute) // the worker comes back
		closeEngine(t, e)
	})
}

func TestCancelWhileHanging(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDir(t, ofNames("a"))
		e := New(Options{})
		release := make(chan struct{})
		result := make(chan error)
		go func() {
			_, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at(""), Skip: func(string) bool { <-release; return false }}})
			result <- err
		}()
		synctest.Wait()
		if err := e.Close(); err == nil {
			t.Error("Close says nothing of a worker that is stuck, want an error")
		}
		if err := <-result; err == nil {
			t.Error("the query gave an answer, want an error")
		}
		close(release)
	})
}

// With a limit the totals go on for CountFor only, but never before it is known whether more follows.
func TestCountFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDir(t, ofNames("a", "b", "c", "d", "e/f", "g"))
		e := New(Options{Workers: 1})
		defer closeEngine(t, e)
		a, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Mode: Lines, Limit: 2, CountFor: 2500 * time.Millisecond, Scope: Scope{Place: d.at(""), Skip: func(string) bool {
			time.Sleep(time.Second)
			return false
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.names(a.Files); !slices.Equal(got, []string{"a", "b"}) || !a.More || a.Exact || !a.Coverage.Complete {
			t.Errorf("got %v, more %v, exact %v, %+v; want a and b, more, lower bounds, complete", got, a.More, a.Exact, a.Coverage)
		}
		if a.NLines < 3 || a.NLines > 5 {
			t.Errorf("total %d, want some of those behind", a.NLines)
		}
	})
}

func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDir(t, ofNames("a", "b", "c", "d"))
		e := New(Options{Workers: 1})
		defer closeEngine(t, e)
		var seen []int64
		_, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at(""), Skip: func(string) bool {
			time.Sleep(600 * time.Millisecond)
			return false
		}}, Progress: func(files, _ int64) { seen = append(seen, files) }})
		if err != nil || !slices.Equal(seen, []int64{1, 3}) {
			t.Errorf("Progress saw %v, %v; want 1 after one second and 3 after two", seen, err)
		}
	})
}

// A tree may be deeper than the longest path that a system call takes.
func TestDeepTree(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems refuse to make such a tree")
	}
	d := newDir(t, nil)
	at, err := d.root.OpenRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 100)
	for i := range 60 {
		if err := at.Mkdir(name, 0o755); err != nil {
			t.Fatal(i, err)
		}
		next, err := at.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		_ = at.Close()
		at = next
	}
	defer at.Close()
	if err := at.WriteFile("file", []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if a := d.grep(t, GrepQuery{Pattern: "x"}); a.NFiles != 1 || !a.Coverage.Complete {
		t.Errorf("got %d files, %+v; want the one at the bottom", a.NFiles, a.Coverage)
	}
}

func TestComparePaths(t *testing.T) {
	t.Parallel()
	names := []string{"a", "a/x", "a/x/y", "a-b/x", "a.b", "ab", "b"}
	for i, a := range names {
		for j, b := range names {
			if got := comparePaths(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("comparePaths(%s, %s) = %d, want the order of %v", a, b, got, names)
			}
		}
	}
}

func TestSomeKeepsTheFirst(t *testing.T) {
	t.Parallel()
	var s Some
	for _, i := range []int{7, 3, 9, 1, 8, 2, 6} {
		s.add(fmt.Sprint(i))
	}
	if want := []string{"1", "2", "3", "6", "7"}; s.N != 7 || !slices.Equal(s.Paths, want) {
		t.Errorf("got %+v, want 7 and %v", s, want)
	}
}
