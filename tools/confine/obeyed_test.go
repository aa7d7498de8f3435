package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/tools/guarded"
)

// A value of git's configuration names what git starts in many ways. What is no file of the workspace, what only shows
// up as an operand, and what a package manager installs stays free.
func TestStarted(t *testing.T) {
	t.Parallel()
	root := tree(t, "tools/run", "tools/x y", "a.py", "README", "status", "docs/guide.md", ".venv/pyvenv.cfg", ".venv/bin/strip",
		"node_modules/.bin/x", "home/bin/ed", ".git/HEAD", ".git/config", "dir/in")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Protected: names, Whose: Whose{Roots: []string{root}, Home: filepath.Join(root, "home")}}, os.Environ)
	for line, want := range map[string]string{
		"tools/run %f": "tools/run", "./tools/run": "tools/run", "!tools/run": "tools/run", root + "/tools/run": "tools/run",
		"~/bin/ed -w": "home/bin/ed", `\"tools/x y\" %f`: "tools/x y", `sh -c 'exec \"tools/x y\" -'`: "tools/x y",
		"FOO=1 tools/run": "tools/run", "cat %f | tools/run": "tools/run", "cat;tools/run": "tools/run",
		`!f() { tools/run \"$@\"; }; f`: "tools/run", `!$(git rev-parse --show-toplevel)/tools/run`: "tools/run",
		`!\"$(git rev-parse --show-toplevel)/tools/x y\"`: "tools/x y", `!${GIT_PREFIX:-.}/tools/run`: "tools/run",
		"python3 -u a.py": "a.py", "/usr/bin/python3 a.py x": "a.py", "!. a.py": "a.py", "env python3.11 a.py": "a.py",
		"node --require ./a.py status": "a.py", "tools/gone --x": "tools/gone",
		"status": "", "!cat README": "", "code --wait": "", "git-lfs clean -- %f": "", "less -R": "", "true": "",
		".venv/bin/strip": "", "node_modules/.bin/x": "", "tools": "", "dir": "", "/usr/bin/vim": "", "!make dir": "",
		"!cat tools/gone": "", ".git/hooks/x": "", "!vim docs/guide.md": "docs/guide.md",
	} {
		text := "[core]\n\teditor = \"" + line + "\"\n"
		if err := os.WriteFile(filepath.Join(root, ".git/config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range c.obeyedBeside([]string{root}, []string{filepath.Join(root, "x")}) {
			rel, _ := filepath.Rel(root, o.Path)
			if got = append(got, rel); o.Key != "core.editor" || o.Name != ".git/config" {
				t.Errorf("%s: %+v", line, o)
			}
		}
		if slices.Sort(got); strings.Join(slices.Compact(got), " ") != want {
			t.Errorf("%s starts %q, want %q", line, got, want)
		}
	}
}

// Relative names count from the top of each work tree: also of a submodule, of a linked work tree and of a repository
// without one.
func TestObeyedBeside(t *testing.T) {
	t.Parallel()
	root := tree(t, "main/.git/HEAD", "main/.git/config", "main/.git/modules/sub/HEAD", "main/.git/modules/sub/config",
		"main/.git/worktrees/w/HEAD", "main/sub/hooks/x", "w/hooks/x", "main/hooks/x", "bare/HEAD", "bare/objects/x",
		"bare/refs/x", "bare/config", "bare/made/x", "home/.gitconfig", "elsewhere/x")
	for file, text := range map[string]string{
		"main/.git/config": "[core]\n\thooksPath = hooks\n", "main/.git/modules/sub/config": "[Core]\n\tHooksPath = hooks\n",
		"main/sub/.git": "gitdir: ../.git/modules/sub\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n",
		"main/.git/worktrees/w/commondir": "../..\n", "main/.git/worktrees/w/gitdir": filepath.Join(root, "w/.git") + "\n",
		"bare/config": "[core]\n\thookspath = made\n", "home/.gitconfig": "[core]\n\tsshCommand = " + root + "/elsewhere/x -F y\n",
		"main/.git/worktrees/w/config.worktree": "[core]\n\tfsmonitor = ./hooks/../fs\n",
	} {
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for unprotect, want := range map[string]string{
		"":            "bare/made elsewhere/x main/hooks main/sub/hooks w/fs w/hooks",
		".git/hooks":  "elsewhere/x w/fs",
		".git/config": "bare/made main/hooks main/sub/hooks w/hooks",
	} {
		names, err := guarded.ProtectedNames(nil, slices.DeleteFunc([]string{unprotect}, func(s string) bool { return s == "" }))
		if err != nil {
			t.Fatal(err)
		}
		c := New(Options{Protected: names, Whose: Whose{Roots: []string{root}, Home: filepath.Join(root, "home")}}, os.Environ)
		var got []string
		all := c.obeyedBeside([]string{root}, []string{filepath.Join(root, "x")})
		for _, o := range all {
			rel, _ := filepath.Rel(root, o.Path)
			got = append(got, rel)
		}
		if slices.Sort(got); strings.Join(slices.Compact(got), " ") != want {
			t.Errorf("without %q git obeys %q, want %q", unprotect, slices.Compact(got), want)
		}
		if _, found := all.Find(filepath.Join(root, "MAIN/hooks/x")); found != strings.Contains(want, "main/hooks") {
			t.Errorf("without %q main/hooks/x is found: %v", unprotect, found)
		}
		if _, found := all.Find(filepath.Join(root, "main/hooks2")); found {
			t.Error("a name that begins alike is found")
		}
	}
	if found := (*Session)(nil).Obeyed([]string{root}, nil); found != nil {
		t.Errorf("without a session there is %v", found)
	}
}

// What configurations say counts as they are now. A repository that was made meanwhile counts at once around a path,
// and elsewhere after the next look, as a command takes it.
func TestObeyedNow(t *testing.T) {
	t.Parallel()
	root := tree(t, "old/.git/HEAD", "old/.git/config", "hooks/x", "new/deep/down/a/b/x", "new/hooks/x")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Protected: names, Whose: Whose{Roots: []string{root}}}, os.Environ)
	config := func(repository, text string) {
		if err := os.WriteFile(filepath.Join(root, repository, "config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(when, path string, want ...string) {
		t.Helper()
		var got []string
		for _, o := range c.obeyedBeside([]string{root}, []string{filepath.Join(root, path)}) {
			got = append(got, o.Path)
		}
		if got := below(t, root, got); !slices.Equal(got, want) {
			t.Errorf("%s git obeys %q, want %q", when, got, want)
		}
	}
	holds("before any setting", "x")
	config("old/.git", "[core]\n\thooksPath = ../hooks\n")
	holds("after a setting", "x", "hooks")
	for _, at := range []string{"new/.git", "new/deep/down/a/b/.git"} { // deeper than a look goes
		if err := os.MkdirAll(filepath.Join(root, at), 0o700); err != nil {
			t.Fatal(err)
		}
		config(at, "[core]\n\thooksPath = hooks\n")
	}
	holds("beside new repositories", "x", "hooks")
	holds("in a new repository", "new/a", "hooks", "new/hooks")
	holds("in two", "new/deep/down/a/b/c/gone/x", "hooks", "new/deep/down/a/b/hooks", "new/hooks")
	c.finder(nil).protectedIn(root)
	holds("after a look", "x", "hooks", "new/hooks")
	if err := os.RemoveAll(filepath.Join(root, "old")); err != nil {
		t.Fatal(err)
	}
	holds("without the first", "x", "new/hooks")
}

// What the look costs before each call that changes a file, in the repository of codehand.
func BenchmarkObeyed(b *testing.B) {
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		b.Fatal(err)
	}
	c := New(Options{Protected: names, Whose: Whose{Roots: []string{root}}}, os.Environ)
	c.finder(nil).protectedIn(root)
	for b.Loop() {
		c.obeyedBeside([]string{root}, []string{filepath.Join(root, "x")})
	}
}
