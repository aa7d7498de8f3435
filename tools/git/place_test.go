package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filesIn makes files below a new directory, and returns it: name, text, name, text. A text is written with DIR in the
// place of that directory; a name that ends in a slash is a directory.
func filesIn(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		if strings.HasSuffix(files[i], "/") {
			if err := os.MkdirAll(filepath.Join(dir, files[i]), 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, dir, files[i], strings.ReplaceAll(files[i+1], "DIR", filepath.ToSlash(dir)))
	}
	return dir
}

// What a file of the work tree says is believed only if the repository says so, too. A `.git` file, `commondir` or a
// link led to the objects of any other repository.
func TestFind(t *testing.T) {
	t.Parallel()
	head := "ref: refs/heads/main\n"
	dir := filesIn(t,
		"repo/.git/HEAD", head, "repo/sub/f", "",
		"repo/.git/worktrees/w/HEAD", head, "repo/.git/worktrees/w/commondir", "../..\n",
		"repo/.git/worktrees/w/gitdir", "DIR/w/.git\n", "w/.git", "gitdir: DIR/repo/.git/worktrees/w\n",
		"repo/.git/worktrees/in/HEAD", head, "repo/.git/worktrees/in/commondir", "../..\n",
		"repo/.git/worktrees/in/gitdir", "DIR/repo/in/.git\n", "repo/in/.git", "gitdir: ../.git/worktrees/in\n",
		"repo/.git/modules/m/HEAD", head, "repo/.git/modules/m/config", "[core]\n\tworktree = ../../../m\n",
		"repo/m/.git", "gitdir: ../.git/modules/m\n",
		"own/.git", "gitdir: store\n", "own/store/HEAD", head,
		"copied/.git", "gitdir: DIR/repo/.git/worktrees/w\n",
		"module/.git", "gitdir: DIR/repo/.git/modules/m\n",
		"whole/.git", "gitdir: DIR/repo/.git\n",
		"common/.git/HEAD", head, "common/.git/commondir", "DIR/repo/.git\n",
		"made/.git", "gitdir: x/worktrees/w\n", "made/x/worktrees/w/HEAD", head,
		"made/x/worktrees/w/gitdir", "DIR/made/.git\n", "made/x/worktrees/w/commondir", "DIR/repo/.git\n",
		"linked/", "", "none/", "")
	if err := os.Symlink(filepath.Join(dir, "repo", ".git"), filepath.Join(dir, "linked", ".git")); err != nil {
		t.Log("no links here:", err)
	}
	for at, want := range map[string][2]string{
		"repo": {"repo/.git", "repo/.git"}, "repo/sub": {"repo/.git", "repo/.git"},
		"w":       {"repo/.git/worktrees/w", "repo/.git"},
		"repo/in": {"repo/.git/worktrees/in", "repo/.git"},
		"repo/m":  {"repo/.git/modules/m", "repo/.git/modules/m"},
		"own":     {"own/store", "own/store"},
		"copied":  {}, "module": {}, "whole": {}, "common": {}, "made": {}, "linked": {}, "none": {},
	} {
		p, ok := Find(filepath.Join(dir, filepath.FromSlash(at)))
		if ok != (want[0] != "") {
			t.Errorf("%s: %v, %+v", at, ok, p)
			continue
		}
		if ok && (p.Dir != filepath.Join(dir, want[0]) || p.Common != filepath.Join(dir, want[1])) {
			t.Errorf("%s: %+v, want %v", at, p, want)
		}
	}
}

// A work tree whose repository lies elsewhere opens it, if the repository knows that work tree.
func TestLinkedCommon(t *testing.T) {
	t.Parallel()
	head := "ref: refs/heads/main\n"
	dir := filesIn(t,
		"repo/.git/HEAD", head, "repo/.git/objects/", "", "repo/.git/refs/", "", "repo/.git/worktrees/w/HEAD", head,
		"repo/.git/worktrees/w/gitdir", "DIR/w/.git\n", "repo/.git/worktrees/w/commondir", "../..\n",
		"w/.git", "gitdir: DIR/repo/.git/worktrees/w\n",
		"forged/.git", "gitdir: DIR/home/worktrees/b\n", "home/worktrees/b/HEAD", head, // home is no repository
		"home/worktrees/b/gitdir", "DIR/forged/.git\n", "home/worktrees/b/commondir", "../..\n",
		"sly/.git", "gitdir: DIR/bare/worktrees/b\n", "bare/worktrees/b/HEAD", head, "bare/HEAD", head,
		"bare/objects/", "", "bare/refs/", "",
		"bare/worktrees/b/gitdir", "DIR/sly/.git\n", "bare/worktrees/b/commondir", "../..\n",
		"other/.git", "gitdir: DIR/repo/.git/worktrees/w\n",
		"evil/.git", "gitdir: fake/worktrees/x\n", "evil/fake/worktrees/x/HEAD", head,
		"evil/fake/worktrees/x/gitdir", "DIR/evil/.git\n", "evil/fake/worktrees/x/commondir", "DIR/repo/.git\n",
		"own/.git", "gitdir: fake/worktrees/x\n", "own/fake/worktrees/x/HEAD", head,
		"own/fake/worktrees/x/gitdir", "DIR/own/.git\n", "own/fake/worktrees/x/commondir", "../..\n")
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for at, c := range map[string]struct {
		written []string
		want    string
	}{
		"w":      {want: in("repo/.git")},
		"w/":     {[]string{in("w"), in("other")}, in("repo/.git")},
		"w//":    {[]string{dir}, in("repo/.git")}, // it gives nothing beyond dir
		"w///":   {[]string{in("repo/.git/worktrees")}, ""},
		"w////":  {[]string{in("w"), in("repo/.git/worktrees/w")}, ""},
		"repo":   {}, // its repository lies within
		"other":  {}, // the repository does not know it
		"evil":   {}, // all of it lies in the work tree
		"own":    {}, // likewise
		"forged": {},
		"sly":    {want: in("bare")},
		"sly/":   {[]string{in("sly"), in("bare/worktrees/b")}, ""},
		"sly//":  {[]string{dir}, ""}, // any directory could be made to look like it
	} {
		if got := LinkedCommon(in(at), c.written); got != c.want {
			t.Errorf("%s, written %q: got %q, want %q", at, c.written, got, c.want)
		}
	}
}

// Keys in included files were not seen, so a filter of git was taken for none.
func TestValues(t *testing.T) {
	t.Parallel()
	const key = "core.attributesfile"
	set := func(value string) string { return "[core]\n\tattributesFile = " + value + "\n" }
	dir := filesIn(t,
		"plain", set("a"), "twice", set("a")+set("b"),
		"includes", set("a")+"[include]\n\tpath = more\n"+set("c"), "more", set("b"),
		"home", "[include]\n\tpath = ~/deep/more\n", "deep/more", set("d")+"[include]\n\tpath = next\n",
		"deep/next", set("e"),
		"condition", "[includeIf \"gitdir:~/x/\"]\n\tpath = more\n",
		"missing", "[include]\n\tpath = none\n"+set("a"),
		"loop", set("a")+"[include]\n\tpath = loop\n",
		"another", "[include]\n\tpath = ~other/x\n"+set("a"), "wrong", "[core\n",
		"directory", "[include]\n\tpath = deep\n")
	for _, c := range []struct {
		files string
		want  []string
		whole bool
	}{
		{"plain", []string{"a"}, true}, {"twice", []string{"a", "b"}, true}, {"none", nil, true},
		{"plain more", []string{"a", "b"}, true}, {"includes", []string{"a", "b", "c"}, true},
		{"home", []string{"d", "e"}, true}, {"condition", []string{"b"}, true}, {"missing", []string{"a"}, true},
		{"loop", []string{"a"}, true}, {"another", []string{"a"}, false}, {"wrong", nil, false},
		{"directory", nil, false},
	} {
		var files []string
		for _, name := range strings.Fields(c.files) {
			files = append(files, filepath.Join(dir, name))
		}
		if got, whole := Values(dir, key, files...); !slices.Equal(got, c.want) || whole != c.whole {
			t.Errorf("%s: %q, whole %v; want %q, %v", c.files, got, whole, c.want, c.whole)
		}
	}
}
