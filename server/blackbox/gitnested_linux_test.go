package blackbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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
		{"worktree", "add", "-q", ".codehand/worktrees/ours"},
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
		{"git worktree remove .codehand/worktrees/ours", ".codehand/worktrees/ours"}, // of enter_worktree
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

// Parts of scripts that make repositories below NAME, of which git would run EVIL.
const (
	makeCommit = "git -c core.fsmonitor= -C $1 commit -q --allow-empty -m x; "
	makeLib    = "git init -q NAME/lib; set -- NAME/lib; " + makeCommit
	makeDeep   = "git init -q NAME/a/b/c/d/e; set -- NAME/a/b/c/d/e; " + makeCommit + "mkdir NAME/lib; "
	makeConfig = "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = EVIL\\n' "
	makeScript = "printf '#!/bin/sh\\n\"EVIL\"\\n' >hook; chmod +x hook; "
	makeHook   = makeScript + "cp hook $1/.git/hooks/post-index-change; cp hook $1/.git/hooks/post-checkout; touch $1/new; git -C $1 add new; "
)

// look asks git for the state of the whole, as a person does, and fails if that ran what a command wrote below name.
func (p *profiled) look(name string) {
	t := p.T
	t.Helper()
	for _, args := range [][]string{{"status"}, {"diff"}, {"-C", name + "/lib", "status"}, {"-C", name + "/lib", "checkout", "-q", "-B", "other"}} {
		p.outside("", args...)
	}
	if ran, err := os.ReadFile(p.in("ran")); err == nil {
		t.Errorf("%s: git of the person ran %d times what a command wrote", name, strings.Count(string(ran), "\n"))
		must(t, os.Remove(p.in("ran")))
	}
}

// A repository that a command itself had made ran what the command wrote as soon as a person asked git for the state of
// the whole: its hooks, what its commondir or a `.git` that is a file or a link led to at any depth or in the caches,
// a configuration that was a link, locked, too large or not understood, and all of it where the command had shut the
// directories on the way.
func TestRepositoriesOfACommand(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	evil := p.in("home/evil")
	p.lay("home/evil", "#!/bin/sh\necho it ran >>"+p.in("ran")+"\n")
	must(t, os.Chmod(evil, 0o700))
	cases := []struct{ name, text string }{
		{"hooks", makeLib + makeHook},
		{"hooks-link", makeLib + makeScript + "mv $1/.git/hooks $1/.git/h; ln -s h $1/.git/hooks; cp hook $1/.git/h/post-index-change; touch $1/n; git -C $1 add n; "},
		{"commondir", makeLib + "mkdir -p NAME/a/b/c/d; cp -rL $1/.git NAME/a/b/c/d/e; " + makeConfig + ">NAME/a/b/c/d/e/config; echo ../../a/b/c/d/e >$1/.git/commondir"},
		{"bare-commondir", "mkdir -p NAME/lib NAME/shared/objects NAME/shared/refs; echo 'ref: refs/heads/x' >NAME/lib/HEAD; echo ../shared >NAME/lib/commondir; " +
			makeConfig + ">NAME/shared/config; printf '[core]\n\tbare = false\n\tworktree = .\n' >NAME/lib/config.worktree; printf '[extensions]\n\tworktreeConfig = true\n' >>NAME/shared/config"},
		{"file", makeDeep + makeConfig + ">$1/.git/config; echo 'gitdir: ../a/b/c/d/e/.git' >NAME/lib/.git"},
		{"file-hooks", makeDeep + makeHook + "echo 'gitdir: ../a/b/c/d/e/.git' >NAME/lib/.git"},
		{"file-nul", makeDeep + makeConfig + ">$1/.git/config; printf 'gitdir: ../a/b/c/d/e/.git\\0x\\n' >NAME/lib/.git"},
		{"file-turns", makeDeep + makeConfig + ">$1/.git/config; ln -s ../a/b/c/d/e NAME/lib/z; echo 'gitdir: z/../e/.git' >NAME/lib/.git"},
		{"file-cache", "git init -q $GOCACHE/NAME; set -- $GOCACHE/NAME; " + makeCommit + makeConfig + ">$1/.git/config; mkdir -p NAME/lib; echo \"gitdir: $1/.git\" >NAME/lib/.git"},
		{"link", makeDeep + makeConfig + ">$1/.git/config; ln -s ../a/b/c/d/e/.git NAME/lib/.git"},
		{"config-link", makeLib + makeConfig + ">$1/.git/c; rm $1/.git/config; ln -s c $1/.git/config"},
		{"config-lock", makeLib + makeConfig + ">$1/.git/config; touch $1/.git/config.lock"},
		{"config-large", makeLib + makeConfig + ">$1/.git/config; yes '#' | head -c 3000000 >>$1/.git/config"},
		{"shut-config", makeLib + makeConfig + ">$1/.git/config; chmod 0555 $1/.git"},
		{"shut-dot", makeDeep + makeConfig + ">$1/.git/config; ln -s ../a/b/c/d/e/.git NAME/lib/.git; chmod 0555 NAME/lib"},
		{"shut-way", makeLib + makeConfig + ">$1/.git/config; chmod 0111 $1/.git $1 NAME"},
		{"config-odd", makeLib + makeConfig + ">$1/.git/config; printf '[odd \"\\n' >>$1/.git/config"},
	}
	for _, c := range cases {
		text := "mkdir -p NAME; " + c.text + "\ngit update-index --add --cacheinfo 160000,$(git -c core.fsmonitor= -C NAME/lib rev-parse HEAD || git rev-parse HEAD),NAME/lib; :"
		said := p.script(strings.NewReplacer("NAME", c.name, "EVIL", evil).Replace(text))
		if !strings.Contains(said, ": set aside ") && !strings.Contains(said, ": took out ") {
			t.Errorf("%s: nothing is told: %s", c.name, said)
		}
		p.look(c.name)
		if strings.HasPrefix(c.name, "shut") { // the person opens it
			must(t, exec.Command("chmod", "-R", "u+rwX", filepath.Join(p.root, c.name)).Run())
			p.look(c.name)
		}
	}
	// In two steps: what leads there first, then what it leads to.
	p.script(strings.NewReplacer("NAME", "steps", "EVIL", evil).Replace("mkdir steps; " + makeDeep + "echo 'gitdir: ../a/b/c/d/e/.git' >NAME/lib/.git; " +
		"git update-index --add --cacheinfo 160000,$(git -C NAME/lib rev-parse HEAD),NAME/lib; :"))
	p.script(strings.NewReplacer("NAME", "steps", "EVIL", evil).Replace("set -- NAME/a/b/c/d/e; " + makeConfig + ">$1/.git/config; " + makeHook + ":"))
	p.look("steps")
	// What git itself makes stays as it is.
	said := p.script(`git init -q --bare ../b/new.git; git clone -q ../b/bare own/clone; git init -q own/new
		git worktree add -q own/tree; git -C own/new commit -q --allow-empty -m x; git -C own/tree log --oneline`)
	// in a command of its own: one that this command has just made is no remote yet
	said += "\n" + p.script(`git -c protocol.file.allow=always submodule add -q ./own/new own/module
		git -C own/module log --oneline`)
	if strings.Contains(said, "set aside") || strings.Contains(said, "took out") || strings.Count(said, " x\n")+strings.Count(said, " first\n") != 2 {
		t.Errorf("repositories as git makes them: %s", said)
	}
	if got := p.outside("own/module", "log", "--oneline") + p.outside("own/tree", "status"); !strings.Contains(got, " x\n") || strings.Contains(got, "fatal") {
		t.Errorf("repositories as git makes them: %s", got)
	}
}

// A command that had only to wait until it was a job left repositories that ran what it wrote, and so did one that was a
// job from the start. A person may have made what appeared meanwhile, so all of it is kept aside.
func TestRepositoriesOfAJob(t *testing.T) {
	t.Parallel()
	p := gitWork(t, "--shell-auto-background-ms=1")
	evil := p.in("home/evil")
	p.lay("home/evil", "#!/bin/sh\necho it ran >>"+p.in("ran")+"\n")
	must(t, os.Chmod(evil, 0o700))
	must(t, syscall.Mkfifo(filepath.Join(p.root, "go"), 0o600))
	for _, name := range []string{"late", "job"} {
		p.lay("a/j.sh", strings.NewReplacer("NAME", name, "EVIL", evil).Replace("cat go; mkdir NAME; "+makeLib+makeHook+makeConfig+
			">$1/.git/config; git update-index --add --cacheinfo 160000,$(git -c core.fsmonitor= -C NAME/lib rev-parse HEAD),NAME/lib"))
		said := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash j.sh", "run_in_background", name == "job"))
		must(t, os.WriteFile(filepath.Join(p.root, "go"), nil, 0o600)) // waits for the job
		out := p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", replaytest.JobID.FindString(said), "block", true))
		for _, told := range []string{"/lib/.git/config: took out core.fsmonitor", "/lib/.git/hooks: set aside as hooks.refused-", "renames it back"} {
			if !strings.Contains(out, told) {
				t.Errorf("%s: nothing is told of %s: %s", name, told, out)
			}
		}
		p.look(name)
	}
	// The server ends a job that would go on.
	p.lay("a/j.sh", strings.NewReplacer("NAME", "end", "EVIL", evil).Replace("mkdir NAME; "+makeLib+makeHook+makeConfig+
		">$1/.git/config; git update-index --add --cacheinfo 160000,$(git -c core.fsmonitor= -C NAME/lib rev-parse HEAD),NAME/lib; echo >go; cat go"))
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash j.sh"))
	_, err := os.ReadFile(filepath.Join(p.root, "go")) // waits for the job
	must(t, err)
	must(t, p.In.Close())
	for range p.Lines { // to its end
	}
	must(t, p.Cmd.Wait())
	p.look("end")
}
