package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// outside runs a command of git below the first root as the person does, with what would make it run a program of the
// workspace left as it is.
func (p *profiled) outside(dir string, args ...string) string {
	p.T.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(p.root, dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.in("home"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always"}
	out, _ := cmd.CombinedOutput() // what it says counts
	return string(out)
}

// A command wrote hooks and configuration of repositories below the workspace's own one, which git obeys when a person
// looks at the workspace: those of submodules whose name has a slash or that lie in a submodule, what was missing there
// and in repositories without hooks, repositories at any depth that an index names, directories that are repositories
// without a `.git`, and what git reads besides its configuration once that says so.
func TestRepositoriesInRepositories(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	evil := p.in("home/evil")
	p.lay("home/evil", "#!/bin/sh\necho it ran >>"+p.in("ran")+"\n")
	must(t, os.Chmod(evil, 0o700))
	must(t, os.MkdirAll(p.in("home/empty"), 0o700))
	const deep = "one/two/three/four/five"
	for _, args := range [][]string{
		{"init", "-q", "../b/lib"}, {"-C", "../b/lib", "commit", "-q", "--allow-empty", "-m", "x"},
		{"submodule", "add", "-q", p.in("b/lib"), "third_party/deep/lib"},
		{"-c", "init.templateDir=" + p.in("home/empty"), "submodule", "add", "-q", p.in("b/lib"), "bare"},
		{"-C", "third_party/deep/lib", "submodule", "add", "-q", p.in("b/lib"), "in/ner"},
		{"init", "-q", "--template=", "near"}, {"-C", "near", "commit", "-q", "--allow-empty", "-m", "x"},
		{"init", "-q", deep}, {"-C", deep, "commit", "-q", "--allow-empty", "-m", "x"},
		{"add", "one"}, {"commit", "-q", "-m", "y"},
	} {
		p.outside("", args...)
	}
	fsmonitor := `printf '[core]\n\tfsmonitor = ` + evil + `\n' >>`
	dirs := map[string]string{ // where git runs, by where its repository is
		".git/modules/third_party/deep/lib": "third_party/deep/lib", ".git/modules/bare": "bare", "near/.git": "near",
		".git/modules/third_party/deep/lib/modules/in/ner": "third_party/deep/lib/in/ner", deep + "/.git": deep,
	}
	for repository, dir := range dirs {
		if got := p.outside(dir, "log", "--oneline"); !strings.HasSuffix(got, " x\n") {
			t.Fatalf("%s: %s", dir, got)
		}
		p.script(`cd ` + repository + ` && { mkdir -p hooks; echo '#!/bin/sh' >hooks/post-checkout;
			echo 'echo it ran >>` + p.in("ran") + `' >>hooks/post-checkout; chmod +x hooks/post-checkout; ` + fsmonitor + `config; }; :`)
		p.outside(dir, "status")
		p.outside(dir, "checkout", "-q", "-B", "other")
	}
	// What is at the place of a submodule leads elsewhere, or is another repository.
	p.script(`cd ` + deep + `; mv .git x; mkdir .git; mv ../five ../six; cd ../../../..; mv one seven; :`)
	p.script(`rm -rf ` + deep + `; git init -q ` + deep + `; cd ` + deep + `; git commit -q --allow-empty -m z; ` + fsmonitor + `.git/config; :`)
	p.script(`git init -q a/b/c/d/e; (cd a/b/c/d/e; git commit -q --allow-empty -m z; ` + fsmonitor + `.git/config); git add a; :`)
	// Directories that are repositories without a `.git`, at the top and below it.
	p.script(`mkdir objects refs src src/objects src/refs; printf '[core]\n\tbare = false\n\tworktree = .\n\trepositoryformatversion = 0\n' >config;
		` + fsmonitor + `config; cp config src; echo 'ref: refs/heads/main' >HEAD; cp HEAD src 2>/dev/null || echo 'ref: refs/heads/main' >src/HEAD; mv .git/HEAD .git/x; :`)
	p.outside("src", "status")
	p.outside("", "status")
	p.script(`mv .git/x .git/HEAD; ` + fsmonitor + `src/config; :`)
	p.outside("src", "status")
	// A job writes what git will read, and the next command makes git read it.
	p.lay("a/j.sh", fsmonitor+".git/config.worktree")
	id := replaytest.JobID.FindString(p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash j.sh", "run_in_background", true)))
	p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", id, "block", true))
	p.script(`git config extensions.worktreeConfig true; :`)
	p.outside("", "status")
	p.outside("", "config", "--unset", "extensions.worktreeConfig")
	p.lay("a/.git/config.worktree", "[core]\n\tfsmonitor = "+evil+"\n")
	p.script(`git config extensions.worktreeConfig true; :`)
	if got := p.outside("", "config", "extensions.worktreeConfig"); strings.Contains(got, "true") {
		p.T.Error("git reads a configuration that was there and that nobody looked at")
	}
	p.outside("", "status")
	if ran, err := os.ReadFile(p.in("ran")); err == nil {
		t.Errorf("git of the person ran %d times what a command wrote", strings.Count(string(ran), "\n"))
	}
}

// A person allowed to remove a clone, and the kernel kept half of it: its configuration and its hooks were held whatever
// the question had said. Beside another command they are.
func TestRemovedRepositories(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	for _, args := range [][]string{
		{"init", "-q", "clone"}, {"init", "-q", "sub/other"}, {"init", "-q", "held"},
		{"worktree", "add", "-q", "tree"}, {"worktree", "add", "-q", "late"}, {"worktree", "add", "-q", "stays"},
	} {
		p.outside("", args...)
	}
	left := func(name string) bool {
		_, err := os.Lstat(filepath.Join(p.root, name))
		return err == nil
	}
	for _, c := range []struct{ command, gone string }{
		{"rm -rf clone && ls", "clone"}, {"cd sub && rm -rf other; ls; cd ..", "sub/other"},
		{"git worktree remove tree && git worktree list", "tree"},
		{"git worktree remove --force late; ls", ".git/worktrees/late"},
	} {
		if said := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", c.command)); left(c.gone) {
			t.Errorf("%s: %s stays: %s", c.command, c.gone, said)
		}
	}
	p.lay("a/make.sh", "mkdir -p held/.git/hooks; echo evil >held/.git/hooks/pre-commit")
	_, err := p.Call("run_shell", json.RawMessage(replaytest.AsJSON(t, "command", "rm -rf held; bash make.sh")))
	must(t, err)
	_, err = p.Call("run_shell", json.RawMessage(replaytest.AsJSON(t, "command", "git worktree remove stays; bash make.sh")))
	if must(t, err); !left("stays/.git") {
		t.Error("a command removed a work tree that another part of it could have made anew")
	}
	if text, _ := os.ReadFile(filepath.Join(p.root, "held/.git/hooks/pre-commit")); strings.Contains(string(text), "evil") {
		t.Error("a command removed a repository and made hooks in its place")
	}
}
