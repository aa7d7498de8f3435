package confine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/tools/guarded"
	"codehand/tools/sandbox"
)

// A link among what the environment names, as /sbin is on many systems, must not keep commands from starting: a profile
// has none.
func TestToolchainsHaveNoLinks(t *testing.T) {
	t.Parallel()
	dir := tree(t, "tool/bin/x", "home/.nvm/x")
	for link, to := range map[string]string{"sbin": "tool/bin", "home/.cargo": "../tool"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "tool/registry"), 0o700); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	list := in("sbin") + string(filepath.ListSeparator) + in("tool/bin/")
	got := toolchains(Options{Whose: Whose{Home: in("home"), Personal: true}}, []string{"PATH=" + list})
	if want := []string{in("tool/bin"), in("tool"), in("home/.nvm")}; !slices.Equal(got, want) {
		t.Errorf("readable: %q, want %q", got, want)
	}
}

// In a server for several people the home and the data directory of who started it were readable through its PATH.
func TestToolchainsOfASharedServer(t *testing.T) {
	t.Parallel()
	dir := tree(t, "home/.local/bin/x", "home/.local/state/codehand/x", "home/bin/x", "tool/bin/x", "data/bin/x")
	in := func(name string) string { return filepath.Join(dir, name) }
	env := []string{"PATH=" + in("home/.local/bin") + ":" + in("home/bin") + ":" + in("tool/bin") + ":" + in("data/bin")}
	got := toolchains(Options{Whose: Whose{Home: in("home")}, State: in("data")}, env)
	if want := []string{in("tool/bin"), in("tool")}; !slices.Equal(got, want) {
		t.Errorf("readable: %q, want %q", got, want)
	}
}

// A directory that is hidden and holds what a command needs hid that, too.
func TestAround(t *testing.T) {
	t.Parallel()
	dir := tree(t, "state/jobs/a", "state/cache/x/y", "state/journal/z", "other/w")
	in := func(name string) string { return filepath.Join(dir, name) }
	got := around([]string{in("state"), in("other")}, []string{in("state/jobs"), in("state/cache/x"), ""})
	if want := []string{in("state/journal"), in("other")}; !slices.Equal(got, want) {
		t.Errorf("hidden: %q, want %q", got, want)
	}
}

// A command that names a directory above protected names, as the root itself, opened all of them.
func TestAllowedNames(t *testing.T) {
	t.Parallel()
	root := tree(t, ".git/HEAD", ".git/config", ".mcp.json", ".vscode/x")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Protected: names}, func() []string { return nil })
	for allowed, open := range map[string]string{"": ".mcp.json", ".git/config": ".git/config", ".vscode/y": ".vscode"} {
		got, _, _ := c.protectedNames(Use{Roots: []string{root}, Allowed: []string{filepath.Join(root, allowed)}})
		if in := slices.Contains(got, filepath.Join(root, open)); in != (allowed == "") {
			t.Errorf("with %q named, %s is protected: %v", allowed, open, in)
		}
	}
	removed := tree(t, "sub/.git/HEAD", "sub/.git/config", ".git/HEAD", ".git/config")
	use := Use{Roots: []string{removed}, Removed: []string{filepath.Join(removed, "sub"), removed}}
	left, other, _ := c.protectedNames(use)
	for path, want := range map[string]bool{".git/config": true, "sub/.git/config": false, "sub/.git/hooks": false} {
		at := filepath.Join(removed, path)
		if in := slices.Contains(left, at); in != want {
			t.Errorf("%s is protected: %v, although sub goes with all that is in it", path, in)
		}
		if slices.Contains(other.configs, at) && !want {
			t.Errorf("a copy of %s is written", path)
		}
	}
	linked := tree(t, ".git/HEAD", ".git/config", ".git/objects/x", ".git/refs/x", ".git/worktrees/w/HEAD",
		".git/worktrees/other/commondir")
	for name, text := range map[string]string{
		"w/.git": "gitdir: " + linked + "/.git/worktrees/w\n", ".git/worktrees/w/gitdir": linked + "/w/.git\n",
		".git/worktrees/w/commondir": "../..\n", ".git/HEAD": "ref: refs/heads/main\n",
	} {
		at := filepath.Join(linked, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for removed, want := range map[string]bool{"": true, "w": false} {
		use := Use{Roots: []string{linked}, Removed: []string{filepath.Join(linked, removed)}}
		left, _, _ := c.protectedNames(use)
		for name, want := range map[string]bool{
			".git/worktrees/w/commondir": want, ".git/worktrees/other/commondir": true, ".git/config": true,
		} {
			if in := slices.Contains(left, filepath.Join(linked, name)); in != want {
				t.Errorf("with %q removed, %s is protected: %v", removed, name, in)
			}
		}
	}
	got, _, _ := c.protectedNames(Use{Roots: []string{root}})
	for _, missing := range []string{".git/commondir", ".git/hooks", ".envrc"} {
		if !slices.Contains(got, filepath.Join(root, missing)) {
			t.Errorf("%s may be made", missing)
		}
	}
}

// ssh started nowhere for an ordinary user on a system with a file in /etc/ssh/ssh_config.d: "Bad owner or permissions".
func TestSSHStartsForAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if got := misowned(0); len(got) > 0 {
		t.Errorf("root sees its own files, but for %q", got)
	}
	if got := misowned(1000); exists("/etc/ssh/ssh_config.d") && !slices.Equal(got, []string{"/etc/ssh/ssh_config.d"}) {
		t.Errorf("an ordinary user sees all but %q", got)
	}
}

// A session whose root holds the person's home made a ~/.gitconfig where there was none, whose credential helper the
// person's git then ran for another session.
func TestWiderSessionMakesNoGitConfiguration(t *testing.T) {
	t.Parallel()
	above := tree(t, "me/work/x")
	home := filepath.Join(above, "me")
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Protected: names, Whose: Whose{Home: home, Personal: true}}, func() []string { return nil })
	for _, root := range []string{above, home} {
		left, _, _ := c.protectedNames(Use{Roots: []string{root}})
		for _, name := range []string{".gitconfig", ".config/git"} {
			if !slices.Contains(left, filepath.Join(home, name)) {
				t.Errorf("in %s a command may make ~/%s: %q", root, name, left)
			}
		}
	}
	left, _, _ := c.protectedNames(Use{Roots: []string{filepath.Join(home, "work")}})
	if slices.Contains(left, filepath.Join(home, ".gitconfig")) {
		t.Error("what lies outside of the roots is no name of theirs")
	}
}

// A command reached gpg-agent's full socket, which gives secret keys out and deletes them.
func TestRestrictedAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sockets  []string // below the home and the run directory
		root     string
		links    []string // of which names
		target   string
		unshared bool
	}{
		"in the home":       {[]string{"h/.gnupg/S.gpg-agent", "h/.gnupg/S.gpg-agent.extra"}, "ws", []string{"h/.gnupg", "run/gnupg"}, "h/.gnupg", false},
		"in the run":        {[]string{"run/gnupg/S.gpg-agent", "run/gnupg/S.gpg-agent.extra"}, "ws", []string{"h/.gnupg", "run/gnupg"}, "run/gnupg", false},
		"the home is root":  {[]string{"h/.gnupg/S.gpg-agent", "h/.gnupg/S.gpg-agent.extra"}, "h", []string{"h/.gnupg", "run/gnupg"}, "h/.gnupg", false},
		"in none of a root": {[]string{"run/gnupg/S.gpg-agent", "run/gnupg/S.gpg-agent.extra"}, "h", []string{"run/gnupg"}, "run/gnupg", false},
		"only the full one": {[]string{"h/.gnupg/S.gpg-agent"}, "ws", nil, "", true},
		"none":              {nil, "ws", nil, "", false},
	} {
		dir := tree(t, append([]string{"ws/f", "run/f", "h/.gnupg/pubring.kbx", "h/.gnupg/private-keys-v1.d/k"}, c.sockets...)...)
		in := func(name string) string { return filepath.Join(dir, name) }
		env := []string{"XDG_RUNTIME_DIR=" + in("run")}
		o := Options{Protected: new(guarded.Names), Whose: Whose{Home: in("h"), Personal: true}}
		o.Network.Network = sandbox.NetworkOn
		u := Use{Roots: []string{in(c.root)}, Rules: denyingAt(t, in("h"), in(c.root), "Read(nothing)")}
		confiner := New(o, func() []string { return env })
		p, _, _, _ := confiner.profile(&u)
		var want []sandbox.Link
		for _, at := range c.links {
			want = append(want, sandbox.Link{Path: in(at + "/S.gpg-agent"), Target: in(c.target + "/S.gpg-agent.extra")})
		}
		if !slices.Equal(p.Linked, want) || confiner.desktop().unshared != c.unshared {
			t.Errorf("%s: the links are %q", name, p.Linked)
		}
		for _, at := range []string{"h/.gnupg/S.gpg-agent", "run/gnupg/S.gpg-agent"} {
			if slices.Contains(p.Readable, in(at)) || slices.Contains(p.Hidden, in(at)) && want != nil {
				t.Errorf("%s: %s is readable, or hidden with what the link leads to", name, at)
			}
		}
		if c.root == "h" && !slices.Contains(p.Hidden, in("h/.gnupg/private-keys-v1.d")) {
			t.Errorf("%s: hidden are %q", name, p.Hidden)
		}
	}
}
