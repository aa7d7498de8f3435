package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// gitWork is a session at level 3 in a repository with one commit, and a bare one beside it in a second root.
func gitWork(t *testing.T, args ...string) *profiled {
	t.Helper()
	needs(t, "git")
	p := profile(t, []string{"a", "b"}, []string{
		"home/.gitconfig", "[user]\n\tname = T\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n",
	}, []string{"GIT_CONFIG_NOSYSTEM=1"}, args...)
	for _, args := range [][]string{
		{"init", "-q", "a"}, {"-C", "a", "commit", "-q", "--allow-empty", "-m", "first"}, {"init", "-q", "--bare", "b/bare"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = p.base, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.in("home"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return p
}

// config is what git outside of the sandbox reads of a repository below the first root.
func (p *profiled) config(repository string) string {
	p.T.Helper()
	cmd := exec.Command("git", "config", "--list", "--local")
	cmd.Dir = filepath.Join(p.root, repository)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.in("home"), "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.T.Fatalf("git config --list: %v\n%s", err, out)
	}
	return string(out)
}

// Everyday commands of git that write its configuration do all that they do in a terminal, and those keys by which git
// would run something are taken out again and named.
func TestGitConfiguration(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	for _, c := range []struct {
		command string
		script  string // what the command is, where its text does not tell
		dir     string // whose configuration is looked at, below the root
		has     string // words that stand in it afterwards
		hasNot  string
		told    string // words of the answer
	}{
		{command: "git config user.name A", has: "user.name=A"},
		{command: "git branch -m trunk && git branch -m main"},
		{command: "git remote add origin $PWD/../b/bare && git push -q -u origin main", has: "branch.main.remote=origin branch.main.merge=refs/heads/main"},
		{command: "git checkout -q -b x origin/main", has: "branch.x.merge=refs/heads/main"},
		{command: "git branch -m x y", has: "branch.y.merge=refs/heads/main", hasNot: "branch.x"},
		{command: "git init -q", has: "core.bare=false"},
		{command: "git config core.hooksPath h; git config user.email a@b", has: "user.email=a@b", hasNot: "hookspath", told: ".git/config: core.hooksPath"},
		{command: "git config alias.x '!sh' && git x -c 'echo ran'", hasNot: "alias", told: "ran alias.x"},
		{command: "git config --add include.path ../evil", hasNot: "include", told: "include.path"},
		{script: "printf '[core]\\n\\tfsmonitor = ./evil\\n' >n; mv -f n .git/config || mv .git x || rm -f .git/config; true", hasNot: "fsmonitor"},
		{script: "printf '[core]\\n\\tfsmonitor = ./evil\\n' >>.git/config", hasNot: "fsmonitor", told: "core.fsmonitor"},
		{script: "echo '[broken' >>.git/config", hasNot: "broken", told: "cannot be read"},
		{command: "git remote set-url origin 'ext::sh -c id'", has: "bare", hasNot: "ext::", told: "remote.origin.url"},
		{command: "git init -q --bare node_modules/e.git && echo ./x >node_modules/e.git/hooks/post-receive && git remote set-url --push origin $PWD/node_modules/e.git", has: "bare", hasNot: "pushurl", told: "remote.origin.pushurl"},
		{command: "git init -q --bare \"$XDG_CACHE_HOME/e.git\" && git config branch.main.pushRemote \"$XDG_CACHE_HOME/e.git\"", has: "bare", hasNot: "pushremote", told: "branch.main.pushRemote"},
		{command: "git worktree add -q wt && cd wt && git config user.name W && cd ..", has: "user.name=W"},
		{command: "git clone -q ../b/bare sub && git -C sub config core.editor e && git -C sub config user.name S", dir: "sub", has: "user.name=S remote.origin.url", hasNot: "editor", told: "sub/.git/config: core.editor"},
		{command: "git -C sub checkout -q -b z && git -C sub push -q -u origin z && git -C sub config core.pager e", dir: "sub", has: "branch.z.merge", hasNot: "pager", told: "sub/.git/config: core.pager"},
		{command: "cp -r sub copy", dir: "copy", has: "user.name=S"},
		{command: "git -c protocol.file.allow=always submodule add $PWD/../b/bare mod 2>&1", has: "submodule.mod.url", told: "done."},
		{command: "git -C mod config core.sshCommand e; git -C mod config user.name M", dir: "mod", has: "user.name=M", hasNot: "sshcommand", told: ".git/modules/mod/config: core.sshCommand"},
		{command: "git sparse-checkout set d && git config --worktree core.editor e", has: "extensions.worktreeconfig=true", hasNot: "editor", told: ".git/config.worktree: core.editor"},
	} {
		if c.script != "" {
			p.lay("a/s.sh", c.script)
			c.command = "bash s.sh"
		}
		text := runs(t, p.Spawned, "{ "+c.command+"\n}; cd '"+p.root+"'")
		got := p.config(c.dir)
		for word := range strings.FieldsSeq(c.has) {
			if !strings.Contains(got, word) {
				t.Errorf("%s: no %s in\n%s%s", c.command, word, got, text)
			}
		}
		if c.hasNot != "" && strings.Contains(got, c.hasNot) {
			t.Errorf("%s: %s stays in\n%s", c.command, c.hasNot, got)
		}
		for word := range strings.FieldsSeq(c.told) {
			if !strings.Contains(text, word) {
				t.Errorf("%s: no word of %s in %s", c.command, word, text)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(p.root, ".git", "*.lock")); len(left) > 0 {
		t.Errorf("locks are left: %q", left)
	}
}

// While a command runs no git outside obeys what it wrote, also if the server is killed, and a job's keys are looked at
// when it ends.
func TestGitConfigurationMeanwhile(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	for _, name := range []string{"wrote", "go"} {
		must(t, syscall.Mkfifo(filepath.Join(p.root, name), 0o600))
	}
	wrote := func() {
		t.Helper()
		_, err := os.ReadFile(filepath.Join(p.root, "wrote")) // waits for the job
		must(t, err)
	}
	// What it writes after another command's keys were taken over must not reach the file itself.
	p.lay("a/j.sh", "git config core.fsmonitor ./evil; git config user.name J; echo >wrote; cat go; printf '[core]\n\tfsmonitor = ./evil\n' >>.git/config")
	text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash j.sh", "run_in_background", true))
	id := replaytest.JobID.FindString(text)
	wrote()
	if got := p.config(""); strings.Contains(got, "fsmonitor") || strings.Contains(got, "user.name=J") {
		t.Errorf("while the job runs, git outside reads\n%s", got)
	}
	runs(t, p.Spawned, "git config user.email c@d")
	must(t, os.WriteFile(filepath.Join(p.root, "go"), nil, 0o600))
	out := p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", id, "block", true))
	if got := p.config(""); !strings.Contains(out, "took out core.fsmonitor") || !strings.Contains(got, "user.name=J") ||
		!strings.Contains(got, "user.email=c@d") || strings.Contains(got, "fsmonitor") {
		t.Errorf("%s\n%s", out, got)
	}

	p.Must(t, "run_shell", replaytest.AsJSON(t, "command",
		"git config core.fsmonitor ./evil; echo >wrote; cat go", "run_in_background", true))
	wrote()
	must(t, p.Cmd.Process.Kill())
	_ = p.Cmd.Wait() // it was killed
	if got := p.config(""); strings.Contains(got, "fsmonitor") {
		t.Errorf("after the server was killed, git outside reads\n%s", got)
	}
}

// Git moves to another commit also where it cannot write a protected file of it. The answer says that this file is behind
// then, and says nothing of one that a person has changed.
func TestGitBehind(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = p.root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.in("home"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	p.lay("a/.husky/pre-commit", "one\n")
	p.lay("a/.vscode/settings.json", "{}\n")
	p.lay("a/x", "x\n")
	git("add", ".")
	git("commit", "-q", "-m", "second")
	git("checkout", "-q", "-b", "feature")
	p.lay("a/.husky/pre-commit", "two\n")
	p.lay("a/y", "y\n")
	git("add", ".")
	git("commit", "-q", "-m", "third")
	git("checkout", "-q", "main")
	p.lay("a/.vscode/settings.json", `{"mine": true}`)
	for _, c := range []struct{ command, says string }{
		{"b=feature; git checkout -q $b; git status --short", "[git could not write .husky/pre-commit: protected, "},
		{"echo z >z && git add z && git commit -q -m fourth", "[git could not write .husky/pre-commit: protected, "},
		{"git reset -q --soft main; git reset -q; true", ""},
		{"rm .git/index && mkfifo .git/index", ""},
	} {
		text := runs(t, p.Spawned, c.command)
		if c.says == "" && strings.Contains(text, "[git could not write ") || !strings.Contains(text, c.says) || strings.Contains(text, "write .vscode") {
			t.Errorf("%s: %s", c.command, text)
		}
	}
}

// TestGitMoves: git goes on where it cannot write a file, or stops half-way. So what it would change of protected files
// is found out before: a person is asked about them, and without one nothing happens at all.
func TestGitMoves(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	at := func(name string) func(args ...string) string {
		return func(args ...string) string {
			t.Helper()
			cmd := exec.Command("git", args...)
			cmd.Dir, cmd.Env = p.in("a/"+name), []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.in("home"), "GIT_CONFIG_NOSYSTEM=1"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
			return string(out)
		}
	}
	must(t, os.Mkdir(p.in("a/r"), 0o755))
	git := at("r")
	commit := func(files ...string) {
		for i := 0; i < len(files); i += 2 {
			p.lay("a/r/"+files[i], files[i+1])
		}
		git("add", "-A")
		git("commit", "-q", "-m", "next")
	}
	const deep = "deep/er/than/that/.vscode/x"
	git("init", "-q")
	commit(".husky/pre-push", "one\n", ".cursor/rules/a.md", "one\n", "x", "one\n", deep, "one\n")
	git("checkout", "-q", "-b", "free")
	commit("x", "two\n", ".gitmodules", "", deep, "two\n")
	git("checkout", "-q", "-b", "feature", "main")
	must(t, os.Remove(p.in("a/r/.cursor/rules/a.md")))
	commit(".husky/pre-push", "two\n", ".idea/a.xml", "new\n")
	git("remote", "add", "origin", ".")
	git("fetch", "-q")
	git("checkout", "-q", "main")
	commit("z", "z\n")
	git("branch", "-q", "-u", "origin/feature") // what a pull fetches is there
	git("branch", "-q", "theirs", "feature")
	git("update-ref", "refs/remotes/origin/theirs2", "theirs")
	person := p.person()
	for i, command := range []string{
		"git checkout origin/feature", "git checkout -q theirs2", "git checkout free && git switch -q theirs",
		"git merge -q -m m theirs", "git rebase -q theirs", "git reset -q --hard theirs", "git cherry-pick theirs",
		"git checkout theirs -- .", "git pull -q --no-edit --no-rebase",
	} {
		name := fmt.Sprint("r", i)
		must(t, os.CopyFS(p.in("a/"+name), os.DirFS(p.in("a/r"))))
		git := at(name)
		git("status") // it looks at the copies once
		head, command := git("rev-parse", "HEAD"), "cd "+p.in("a/"+name)+" && "+command
		text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command))
		if !strings.Contains(text, "ASK_UNAVAILABLE") || git("rev-parse", "HEAD") != head || git("status", "--short") != "" {
			t.Errorf("%s, without a person: %s\n%s", command, text, git("status", "--short"))
		}
		a := person.Call("run_shell", replaytest.AsJSON(t, "command", command), replaytest.Always(replaytest.SayOnce))
		if a.Failed || a.Asked != 1 || strings.Contains(a.Text, "refused") {
			t.Errorf("%s: %+v", command, a)
		}
		p.has(name+"/.husky/pre-push", "two\n")
		p.has(name+"/.idea/a.xml", "new\n")
		if !strings.Contains(command, " -- .") { // which removes nothing
			p.has(name+"/.cursor/rules/a.md", "")
		}
	}
	for _, command := range []string{"git checkout -q free", "git merge -q main -m m", "git stash -u", "git checkout -q -"} {
		if a := person.Call("run_shell", replaytest.AsJSON(t, "command", "cd "+p.in("a/r")+" && "+command), replaytest.Never(t)); a.Failed {
			t.Errorf("%s: %+v", command, a)
		}
	}
}
