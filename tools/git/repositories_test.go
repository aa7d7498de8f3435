package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate"
	"codehand/filestate/leaktest"
)

// A repository whose own configuration makes git start programs is found from wherever git would find it.
func TestRepositoryRuns(t *testing.T) {
	t.Parallel()
	const head, quiet, runs = "ref: refs/heads/main\n", "[core]\n\tbare = false\n", "[core]\n\tfsmonitor = ./x\n"
	const found, unread = "the repository's configuration has core.fsmonitor", unreadable
	repo := func(at, config string) map[string]string {
		return map[string]string{at + "/HEAD": head, at + "/objects/x": "", at + "/refs/x": "", at + "/config": config}
	}
	with := func(files map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		dirs  string // in which git starts
		want  string
	}{
		{"no repository", nil, ".", ""},
		{"quiet", repo(".git", quiet), ".", ""},
		{"runs", repo(".git", runs), ".", found},
		{"without a file", map[string]string{".git/HEAD": head, ".git/objects/x": "", ".git/refs/x": ""}, ".", ""},
		{"from below", with(repo(".git", runs), "a/b/x", ""), "a/b", found},
		{"beside", with(repo("a/.git", runs), "b/x", ""), "b", ""},
		{"the second of two", with(repo("a/.git", runs), "b/x", ""), "b a", found},
		{"the inner one counts", with(repo(".git", runs), "a/.git/HEAD", head, "a/.git/objects/x", "", "a/.git/refs/x", ""), "a", ""},
		{"an inner one that is none", with(repo(".git", runs), "a/.git/HEAD", "nothing", "a/.git/objects/x", "", "a/.git/refs/x", ""), "a", found},
		{"detached", with(repo(".git", runs), ".git/HEAD", strings.Repeat("0a", 20)+"\n"), ".", found},
		{"bare", repo(".", runs), ".", found},
		{"bare, from below", with(repo("a", runs), "a/b/x", ""), "a/b", found},
		{"config.worktree", with(repo(".git", quiet), ".git/config.worktree", runs), ".", found},
		{"include", repo(".git", "[include]\npath = x"), ".", "the repository's configuration has include.path"},
		{"not understood", repo(".git", "what?"), ".", "the repository's configuration has a line that cannot be read"},
		{"too large", repo(".git", strings.Repeat("#\n", maxConfig)), ".", unread},
		{"a directory in place of the file", with(map[string]string{".git/HEAD": head, ".git/objects/x": "", ".git/refs/x": ""}, ".git/config/x", ""), ".", unread},
		{"gitdir", with(repo("real", runs), "a/.git", "gitdir: ../real\n"), "a", found},
		{"gitdir that leads nowhere", map[string]string{"a/.git": "gitdir: ../real\n"}, "a", unread},
		{"a .git that is something else", map[string]string{"a/.git": "what?"}, "a", unread},
		{"linked worktree", with(repo("main/.git", runs), "main/.git/worktrees/w/HEAD", head, "main/.git/worktrees/w/commondir", "../..\n",
			"w/.git", "gitdir: ../main/.git/worktrees/w\n"), "w", found},
		{"linked worktree of its own", with(repo("main/.git", quiet), "main/.git/worktrees/w/HEAD", head, "main/.git/worktrees/w/commondir", "../..\n",
			"main/.git/worktrees/w/config.worktree", runs, "w/.git", "gitdir: ../main/.git/worktrees/w\n"), "w", found},
		{"submodule", with(repo(".git", quiet), ".git/modules/lib/a/HEAD", head, ".git/modules/lib/a/objects/x", "", ".git/modules/lib/a/refs/x", "",
			".git/modules/lib/a/config", runs), ".", found},
		{"submodule as git makes it", with(repo(".git", quiet), ".git/modules/a/HEAD", head, ".git/modules/a/objects/x", "", ".git/modules/a/refs/x", "",
			".git/modules/a/config", "[core]\n\tworktree = ../../../a\n"), ".", ""},
		{"a file of its own", with(repo(".git", "[blame]\n\tignoreRevsFile = revs \n[mailmap]\nfile=\"a/map\"; x\n[core]\nexcludesFile = none"), "revs", "", "a/map", ""), ".", ""},
		{"a file elsewhere", with(repo("a/.git", "[blame] ignoreRevsFile = ../secret"), "secret", ""), "a", "the repository's configuration has ../secret, which is no file of it"},
		{"a file of the home", repo(".git", "[mailmap]\nfile = ~/secret"), ".", "the repository's configuration has ~/secret, which is no file of it"},
		{"a file that is spelled around", with(repo("a/.git", "[mailmap] file = \"..\"/sec\\\nret"), "secret", ""), "a", "the repository's configuration has ../secret, which is no file of it"},
		{"a file of git's", repo(".git", "[core]\nexcludesFile = .git/config"), ".", "the repository's configuration has .git/config, which is no file of it"},
		{"a directory as a file", with(repo(".git", "[core]\nexcludesFile = d"), "d/x", ""), ".", "the repository's configuration has d, which is no file of it"},
		{"a hook", repo(".git", "[hook \"x\"]\ncommand = ./x"), ".", "the repository's configuration has hook.x.command"},
		{"a directory that is gone", nil, "gone", "its directory cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, files := leaktest.Dir(t), filestate.New(filestate.Options{})
			for name, text := range c.files {
				write(t, dir, name, text)
			}
			g := Inspector{Files: files}
			if got := g.ReadsOnly(dir, strings.Fields(c.dirs)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A repository above the root is found, too, and one behind a link is that of its destination.
func TestRepositoryRunsElsewhere(t *testing.T) {
	t.Parallel()
	dir, files := leaktest.Dir(t), filestate.New(filestate.Options{})
	write(t, dir, "top/.git/HEAD", "ref: refs/heads/main\n")
	write(t, dir, "top/.git/objects/x", "")
	write(t, dir, "top/.git/refs/x", "")
	write(t, dir, "top/.git/config", "[alias]\nx = !x\n")
	write(t, dir, "top/sub/x", "")
	if err := os.Symlink("top/sub", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	const want = "the repository's configuration has alias.x"
	for cwd, to := range map[string]string{dir: "link", filepath.Join(dir, "top", "sub"): "."} {
		g := Inspector{Files: files}
		if got := g.ReadsOnly(cwd, []string{to}); got != want {
			t.Errorf("%s in %s: got %q", to, cwd, got)
		}
	}
	g := Inspector{Files: files}
	if got := g.ReadsOnly(filepath.Join(dir, "top"), []string{filepath.Join(dir, "link")}); got != want {
		t.Errorf("got %q", got)
	}
}

// sh runs a script of bash with git in dir.
func sh(t *testing.T, dir, script string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	cmd := exec.Command("bash", "-ec", `g() { `+git+` -c user.name=a -c user.email=a@b -c protocol.file.allow=always "$@"; }; `+script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// What git read was not held against the roots: one file of the repository was enough to show another one's history.
func TestRepositoryLeadsOut(t *testing.T) {
	t.Parallel()
	const init = "g init -q -b main root; cd root; echo a > a; g add a; g commit -qm one; "
	// a main repository outside of the roots, and others in them
	const main = "g init -q -b main main; cd main; echo a > a; g add a; g commit -qm one; "
	for _, c := range []struct {
		name, setup, from, want string // DIR stands for the directory in which the setup began
	}{
		{"plain", init, "root", ""},
		{"from below", init + "mkdir -p b/c", "root/b/c", ""},
		{"a worktree of a repository in the roots", init + "g worktree add -q w", "root/w", ""},
		{"a worktree of one outside", main + "g worktree add -q ../root", "root", ""},
		{"a submodule", main + "cd ..; " + init + "g submodule --quiet add ../main sub; g commit -qm two", "root", ""},
		{"from in a submodule", main + "cd ..; " + init + "g submodule --quiet add ../main sub; g commit -qm two", "root/sub", ""},
		{"a submodule of which the repository is outside", main + "cd ..; g init -q top; cd top; g submodule --quiet add ../main root; mv root ..; cd ..; rm -rf top/x; sed -i 's|\\.\\./\\.git|../top/.git|' root/.git; g config -f top/.git/modules/root/config core.worktree ../../../../root", "root", ""},
		{"a clone that shares within the roots", init + "g clone -qs . c; g clone -qs c e", "root/e", ""},
		{"hooks elsewhere", init + "rm -r .git/hooks; ln -s /usr/bin .git/hooks", "root", ""},
		{"HEAD is a link", init + "ln -sf refs/heads/none .git/HEAD", "root", ""},
		{"above the roots, on stdio", "g init -q .; mkdir root", "root", ""},
		{"above the roots", "g init -q .; mkdir root", "root", "DIR/.git is outside of the roots"},
		{"a .git file", main + "mkdir ../root; echo gitdir: DIR/main/.git > ../root/.git", "root", "DIR/root/.git leads to DIR/main/.git, which is outside of the roots"},
		{"a .git file of another's worktree", main + "g worktree add -q ../w; mkdir ../root; cp ../w/.git ../root/.git", "root", "DIR/root/.git leads to DIR/main/.git/worktrees/w, which is outside of the roots"},
		{"a .git file that is a link", main + "g worktree add -q ../w; mkdir ../root; ln -s ../w/.git ../root/.git", "root", "DIR/root/.git leads to DIR/w/.git, which is outside of the roots"},
		{".git is a link", main + "mkdir ../root; ln -s ../main/.git ../root/.git", "root", "DIR/root/.git leads to DIR/main/.git, which is outside of the roots"},
		{"commondir", main + "cd ..; " + init + "echo ../../main/.git > .git/commondir", "root", "DIR/root/.git/commondir leads to DIR/main/.git, which is outside of the roots"},
		{"alternates", main + "cd ..; " + init + "echo ../../../main/.git/objects > .git/objects/info/alternates", "root", "DIR/root/.git/objects/info/alternates leads to DIR/main/.git/objects, which is outside of the roots"},
		{"alternates of alternates", main + "cd ..; " + init + "g clone -qs . c; g clone -qs c e; echo DIR/main/.git/objects > .git/objects/info/alternates", "root/e", "DIR/root/.git/objects/info/alternates leads to DIR/main/.git/objects, which is outside of the roots"},
		{"quoted alternates", init + `echo '"x"' > .git/objects/info/alternates`, "root", "DIR/root/.git/objects/info/alternates has a line that cannot be read"},
		{"objects", main + "cd ..; " + init + "rm -r .git/objects; ln -s ../../main/.git/objects .git/objects", "root", "DIR/root/.git/objects leads to DIR/main/.git/objects, which is outside of the roots"},
		{"a pack", main + "cd ..; " + init + "touch ../x.pack; ln -s ../../../../x.pack .git/objects/pack/pack-x.pack", "root", "DIR/root/.git/objects/pack/pack-x.pack leads to DIR/x.pack, which is outside of the roots"},
		{"a branch", main + "cd ..; " + init + "ln -s DIR/main/.git/refs/heads/main .git/refs/heads/x", "root", "DIR/root/.git/refs/heads/x leads to DIR/main/.git/refs/heads/main, which is outside of the roots"},
		{"the log", main + "cd ..; " + init + "ln -sf DIR/main/.git/logs/HEAD .git/logs/HEAD", "root", "DIR/root/.git/logs/HEAD leads to DIR/main/.git/logs/HEAD, which is outside of the roots"},
		{"the index", main + "cd ..; " + init + "ln -sf DIR/main/.git/index .git/index", "root", "DIR/root/.git/index leads to DIR/main/.git/index, which is outside of the roots"},
		{"patterns", init + "echo x > ../secret; ln -sf DIR/secret .git/info/exclude", "root", "DIR/root/.git/info/exclude leads to DIR/secret, which is outside of the roots"},
		{"patterns that a rule covers", init + "echo x > secret; ln -sf ../../secret .git/info/attributes", "root", "DIR/root/.git/info/attributes leads to DIR/root/secret, which a rule covers"},
		{"a link in a directory behind a link", main + "cd ..; " + init + "mkdir o; mv .git/logs o/logs; ln -s ../o/logs .git/logs; ln -s DIR/main/.git/index o/logs/x", "root", "DIR/root/o/logs/x leads to DIR/main/.git/index, which is outside of the roots"},
		{"a submodule's .git file", main + "g worktree add -q ../w; cd ..; " + init + "g init -q sub; touch sub/f; g -C sub add f; g -C sub commit -qm sub; g add sub; rm -rf sub/.git; cp ../w/.git sub/.git", "root", "DIR/root/sub/.git leads to DIR/main/.git/worktrees/w, which is outside of the roots"},
		{"a submodule's repository", main + "cd ..; " + init + "mkdir .git/modules; ln -s ../../../main/.git .git/modules/x", "root", "DIR/root/.git/modules/x is a link in place of a submodule's repository"},
		{"a submodule's links", main + "cd ..; " + init + "g submodule --quiet add ../main sub; ln -s DIR/main/.git/index .git/modules/sub/x", "root", "DIR/root/.git/modules/sub/x leads to DIR/main/.git/index, which is outside of the roots"},
		{"a submodule's configuration", init + "mkdir -p .git/modules; g init -q --bare .git/modules/x; g -C .git/modules/x config mailmap.file ../../x", "root", "the configuration of a submodule has ../../x"},
		{"a blob of names", init + "g config mailmap.blob HEAD:secret", "root", "the repository's configuration has mailmap.blob, which may show a file that a rule covers"},
		{"core.worktree", main + "cd ..; " + init + "g config core.worktree DIR/main", "root", "the repository's configuration has core.worktree"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := leaktest.Dir(t)
			sh(t, dir, strings.ReplaceAll(c.setup, "DIR", dir))
			root := filepath.Join(dir, "root")
			g := Inspector{Files: filestate.New(filestate.Options{}), Inside: func(path string) bool { return isBelow(root, real(path)) },
				Ruled: func(path string) bool { return path == filepath.Join(root, "secret") }, Above: c.name != "above the roots"}
			if got := g.ReadsOnly(dir, []string{c.from}); got != strings.ReplaceAll(c.want, "DIR", dir) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// What a repository has outside of the roots was shown where a root is one of its directories.
func TestShowsMore(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	sh(t, dir, "g init -q -b main .; mkdir src; touch src/a b; g add .; g commit -qm one; g init -q src/own")
	for from, asks := range map[string]bool{"src": true, "src/own": false} {
		root := filepath.Join(dir, "src")
		g := Inspector{Files: filestate.New(filestate.Options{}), Above: true, Inside: func(path string) bool { return isBelow(root, path) }}
		if why := g.ShowsMore(dir, []string{from}); (why != "") != asks {
			t.Errorf("%s: %q", from, why)
		}
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// isBelow says whether path is place or below it. Both are clean.
func isBelow(place, path string) bool { return path == place || strings.HasPrefix(path, place+"/") }
