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
			if got := RunsPrograms(files, dir, strings.Fields(c.dirs)); got != c.want {
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
		if got := RunsPrograms(files, cwd, []string{to}); got != want {
			t.Errorf("%s in %s: got %q", to, cwd, got)
		}
	}
	if got := RunsPrograms(files, filepath.Join(dir, "top"), []string{filepath.Join(dir, "link")}); got != want {
		t.Errorf("got %q", got)
	}
}

// `git show HEAD` showed what a rule closes to reading, as a read-only command.
func TestTracked(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	const known, unknown = "a rule covers a file of the repository; name other files after --", "a rule names files, and the list of files in the repository cannot be read"
	for _, c := range []struct{ setup, asked, want string }{
		{"", "d/key", known},
		{"", "a", known},
		{"", "z/" + strings.Repeat("long", 40), known},
		{"", "untracked", ""},
		{"git update-index --index-version 4", "d/key", known},
		{"git update-index --index-version 4", "z/" + strings.Repeat("long", 40), known},
		{"git update-index --index-version 4", "untracked", ""},
		{"git add -N untracked; git update-index --skip-worktree a", "untracked", known}, // version 3
		{"git update-index --split-index; echo x > new; git add new", "d/key", unknown},
		{"echo broken > .git/index", "d/key", unknown},
		{"rm .git/index", "d/key", ""},
		{"rm -rf .git; git init -q --object-format=sha256; git add a d", "d/none", unknown},
	} {
		dir := t.TempDir()
		cmd := exec.Command("bash", "-ec", git+` init -q; mkdir d z; touch a d/key d/other untracked z/`+strings.Repeat("long", 40)+`; git add a d z; `+c.setup)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c.setup, err, out)
		}
		files := filestate.New(filestate.Options{})
		g := inspector{files: files, left: maxModules, ruled: func(path string) bool { return path == filepath.Join(dir, c.asked) }}
		if got := g.tracks(filepath.Join(dir, ".git"), dir); got != c.want {
			t.Errorf("%q, a rule about %s: got %q, want %q", c.setup, c.asked, got, c.want)
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
