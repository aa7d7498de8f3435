package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/confine/look"
	"codehand/tools/guarded"
	"codehand/tools/permission"
)

// tree makes files below a new directory without links in its path, and returns it.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := leaktest.Dir(t)
	for _, name := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if !strings.HasSuffix(name, "/") {
			err = os.WriteFile(path, nil, 0o600)
		} else {
			err = os.MkdirAll(path, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// below returns paths relative to root.
func below(t *testing.T, root string, paths []string) []string {
	t.Helper()
	var out []string
	for _, p := range paths {
		rel, err := filepath.Rel(root, strings.TrimSuffix(p, "/"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(p, "/") {
			rel += "/"
		}
		out = append(out, filepath.ToSlash(rel))
	}
	slices.Sort(out)
	return out
}

// A command read what a rule denies, since rules saw only its text.
func TestRuledNow(t *testing.T) {
	t.Parallel()
	root := tree(t, "secrets/a.txt", "secrets/b/c.txt", "d/secrets/e.txt", "d/key.pem", "key.pem", "open.txt",
		"conf/x.yml", "conf/y.json", "locked.txt")
	for rule, want := range map[string]struct{ hide, keep []string }{
		"Read(secrets/**)":  {hide: []string{"d/secrets", "secrets"}},
		"Read(/secrets/**)": {hide: []string{"secrets"}},
		"Read(*.pem)":       {hide: []string{"d/key.pem", "key.pem"}},
		"Read(/*.pem)":      {hide: []string{"key.pem"}},
		"Read(conf/*.yml)":  {hide: []string{"conf/x.yml"}},
		"Read(/conf/[!y]*)": {hide: []string{"conf/x.yml"}},
		"Read(/conf/[^x]*)": {hide: []string{"conf/y.json"}},
		"Read(/d)":          {hide: []string{"d"}},
		"Read(nothing/**)":  {},
		"Edit(locked.txt)":  {keep: []string{"locked.txt"}},
		"Edit(/conf/**)":    {keep: []string{"conf"}},
		"Bash(rm *)":        {},
	} {
		policy, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: rule, Origin: "test"}}})
		if err != nil {
			t.Fatal(err)
		}
		got := ruledNow(new(look.Looker), policy.At([]string{root}, root), []string{root})
		if hide := below(t, root, got.Hide); !slices.Equal(hide, want.hide) {
			t.Errorf("%s hides %q, want %q", rule, hide, want.hide)
		}
		if keep := below(t, root, got.Keep); !slices.Equal(keep, want.keep) {
			t.Errorf("%s keeps %q, want %q", rule, keep, want.keep)
		}
		if len(got.Missed) > 0 {
			t.Errorf("%s is missed", rule)
		}
	}
}

// A rule about files at any depth of the machine cannot be kept by looking for them all.
func TestMissedRule(t *testing.T) {
	t.Parallel()
	root := tree(t, "a.pem")
	policy, err := permission.New(permission.Options{Deny: []permission.Rule{{Text: "Read(//**/*.pem)", Origin: "test"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := ruledNow(new(look.Looker), policy.At([]string{root}, root), []string{root})
	if hide := below(t, root, got.Hide); !slices.Equal(hide, []string{"a.pem"}) || len(got.Missed) != 1 {
		t.Errorf("hides %q and misses %v", hide, got.Missed)
	}
}

func TestProtectedNow(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/HEAD", ".git/config", ".git/hooks/", ".git/rebase-merge/x", "sub/.git/config", "sub/deep/.vscode/x",
		".mcp.json", "a/b/c/d/.mcp.json", "node_modules/x/.mcp.json", ".git/modules/m/config", "plain.txt",
		".git/modules/m/HEAD", ".git/modules/m/objects/config", ".git/modules/lib/a/b/config", ".git/modules/lib/a/b/hooks/x",
		".git/modules/m/modules/n/commondir", ".git/modules/config/hooks/", "bare/HEAD", "bare/config", "bare/hooks/", "bare/objects/",
		"bare/refs/", "no/HEAD", "no/config", ".jj/repo/config.toml", "hg/.hg/hgrc", "hg/.hg/store/x",
		"linked/HEAD", "linked/commondir", "linked/config.worktree")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".git/config", ".git/hooks", ".git/modules/config/hooks", ".git/modules/lib/a/b/config", ".git/modules/lib/a/b/hooks",
		".git/modules/m/config", ".git/modules/m/modules/n/commondir", ".jj/repo/config.toml", ".mcp.json", "bare/config", "bare/hooks",
		"hg/.hg/hgrc", "linked/commondir", "linked/config.worktree", "sub/.git/config",
		"sub/deep/.vscode"}
	if got := below(t, root, protectedFound(t, root, names.Find)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got := below(t, root, missing(root, names.Texts()))
	for name, in := range map[string]bool{
		".vscode": true, ".envrc": true, "lefthook.yml": true, ".yarnrc.yml": true, "gradle/wrapper": true, ".config/git": true,
		".hg/hgrc": true, ".jj/repo/config.toml": false,
		".mcp.json": false, ".git": false, ".git/hooks": false, ".pnp.cjs": false, ".yarn": false,
	} {
		if slices.Contains(got, name) != in {
			t.Errorf("%s missing: %v, want %v", name, !in, in)
		}
	}
}

// What a command is kept from by its name: as deep as the look for such names goes, and in a work tree of the session
// only what has such a name there.
func TestKeeper(t *testing.T) {
	t.Parallel()
	root := filepath.FromSlash("/w")
	work := filepath.Join(root, ".codehand", "worktrees", "x")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	keeps := New(Options{Protected: names}, func() []string { return nil }).Keeper([]string{root, work})
	for path, want := range map[string]string{
		".husky/a": ".husky", ".vscode": ".vscode", "a/b/c/.mcp.json": "a/b/c/.mcp.json", "a/b/c/d/.mcp.json": "", "a.go": "",
		"node_modules/a/.vscode/x": "", ".gitmodules": "", ".git/config": "", "../.vscode": "", ".codehand/x": ".codehand",
		".codehand/worktrees/x/a.go": "", ".codehand/worktrees/x/.husky/a": ".codehand/worktrees/x/.husky",
	} {
		if want != "" {
			want = filepath.Join(root, filepath.FromSlash(want))
		}
		if got := keeps(filepath.Join(root, filepath.FromSlash(path))); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// protectedFound is protectedNow for a tree that is looked at once.
func protectedFound(t *testing.T, root string, name func(string) string) []string {
	t.Helper()
	all, whole := (&finder{Confiner: &Confiner{}, name: name}).protectedNow(root)
	if !whole {
		t.Error("it is not whole")
	}
	return all.found
}

// Git takes a directory for a repository whose objects another directory has, which need not look like one. A command
// made both, and what the other one's configuration says ran when the person looked at the first.
func TestBareLeads(t *testing.T) {
	t.Parallel()
	root := tree(t, "a/HEAD", "b/c/d/e/f/objects/", "b/c/d/e/f/refs/", "b/c/d/e/f/config", "b/c/d/e/f/hooks/")
	if err := os.WriteFile(filepath.Join(root, "a/commondir"), []byte("../b/c/d/e/f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Protected: names, Whose: Whose{Roots: []string{root}}}, func() []string { return nil })
	all, whole := c.finder(nil).protectedIn(root)
	if got, want := below(t, root, all.found), []string{"a/commondir", "b/c/d/e/f/config", "b/c/d/e/f/hooks"}; !whole || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
