package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// person starts another program over the same roots, for a client whose person can be asked.
func (p *profiled) person() *replaytest.ElicitClient {
	p.T.Helper()
	cmd := exec.Command(p.Cmd.Path, p.Cmd.Args[1:]...)
	cmd.Dir, cmd.Env = p.Cmd.Dir, p.Cmd.Env
	in, err := cmd.StdinPipe()
	must(p.T, err)
	out, err := cmd.StdoutPipe()
	must(p.T, err)
	must(p.T, leaktest.Start(cmd))
	w := replaytest.NewWire(in, out, "person", false)
	p.T.Cleanup(func() {
		_ = in.Close()
		for range w.Lines { // to the end of its output, as Wait demands
		}
		if err := cmd.Wait(); err != nil {
			p.T.Errorf("the program ended with %v", err)
		}
	})
	return replaytest.OnPipeAs(p.T, w, &replaytest.ElicitClient{T: p.T, Caps: replaytest.Declared})
}

// has says what is wrong with a file below the first root; want "": it is not there.
func (p *profiled) has(file, want string) {
	p.T.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, file))
	if want != string(text) || want != "" && err != nil {
		p.T.Errorf("%s has %q, want %q, %v", file, text, want, err)
	}
}

// led makes a repository whose configuration leads to files of the workspace that have no protected name.
func led(t *testing.T) *profiled {
	p := gitWork(t)
	for file, text := range map[string]string{
		"team/gitconfig": "[user]\n\tname = Team\n", "team/hooks/pre-commit": "#!/bin/sh\nexit 0\n", "team/other": "free\n",
		"team/own": "[user]\n\temail = t@example.com\n", "tools/clean": "#!/bin/sh\ncat\n", "show.py": "print(1)\n",
		"tools/lint.py": "print(2)\n", "README": "read me\n", "venv/pyvenv.cfg": "home = /usr\n", "venv/bin/strip": "#!/bin/sh\n",
		"far/hooks/pre-push": "#!/bin/sh\nexit 0\n", "sub/.keep": "",
	} {
		p.lay("a/"+file, text)
	}
	must(t, os.Symlink("../far/hooks", filepath.Join(p.root, "sub/hooks")))
	p.outside(".", "init", "-q", "sub")
	for _, set := range [][]string{
		{"include.path", "../team/gitconfig"}, {"--add", "include.path", "../team/missing"}, {"core.hooksPath", "team/hooks"},
		{"filter.x.clean", "tools/clean %f"}, {"diff.y.textconv", "python3 -B show.py"}, {"alias.readme", "!cat README"},
		{"alias.lint", `!f() { "$(git rev-parse --show-toplevel)/tools/lint.py" "$@"; }; f`}, {"alias.st", "status"},
		{"filter.v.clean", "venv/bin/strip"}, {"core.fsmonitor", "tools/missing"},
		{"--file", p.in("home/.gitconfig"), "include.path", p.in("a/team/own")},
		{"--file", filepath.Join(p.root, "sub/.git/config"), "core.hooksPath", "hooks"},
	} {
		p.outside(".", append([]string{"config"}, set...)...)
	}
	return p
}

// A person's git obeys what its configuration includes, the hooks where it says that they are, and the programs that it
// names, also if a team keeps them in the repository under names of its own. A command wrote them, and the next git
// status ran what it wrote.
func TestWhatGitIsLedTo(t *testing.T) {
	t.Parallel()
	p := led(t)
	const evil = `printf '[core]\n\tfsmonitor = echo\n' `
	for _, c := range []struct{ script, says string }{
		{evil + `>>team/gitconfig`, `git obeys it by include.path`},
		{`echo evil >>team/own`, `permissions.unprotect = [".git/config"]`},
		{`echo evil >>team/hooks/pre-commit`, `permissions.unprotect = [".git/hooks"]`},
		{`echo evil >team/hooks/post-commit`, `git obeys it by core.hooksPath`},
		{`mv team t2; mkdir team; ` + evil + `>team/gitconfig`, `cannot move`},
		{`rm -f team/gitconfig; echo evil >team/gitconfig`, `git obeys it by include.path`},
		{`echo evil >>tools/clean`, `git obeys it by filter.x.clean`},
		{`echo evil >tools/new; mv tools/new tools/clean`, `git obeys it by filter.x.clean`},
		{`echo evil >>show.py`, `git obeys it by diff.y.textconv`},
		{`echo evil >>tools/lint.py`, `git obeys it by alias.lint`},
		{`echo evil >>far/hooks/pre-push`, `git obeys it by core.hooksPath`},
		{`rm sub/hooks; mkdir sub/hooks; echo evil >sub/hooks/pre-push`, ``},
		{`echo evil >team/missing; echo evil >tools/missing`, `made under a protected name`},
	} {
		if said := p.script(c.script + "\nexit 1"); !strings.Contains(said, c.says) {
			t.Errorf("%s: it does not say %q: %s", c.script, c.says, said)
		}
	}
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", `rm script.sh; for f in team/other README venv/bin/strip; do
		echo x >>$f; done; rm -rf venv/lib; touch tools/free; git add -A . ':!sub'; git commit -qm x; git status --short`))
	for file, want := range map[string]string{
		"team/gitconfig": "[user]\n\tname = Team\n", "team/hooks/pre-commit": "#!/bin/sh\nexit 0\n", "team/other": "free\nx\n",
		"team/own": "[user]\n\temail = t@example.com\n", "tools/clean": "#!/bin/sh\ncat\n", "show.py": "print(1)\n",
		"tools/lint.py": "print(2)\n", "README": "read me\nx\n", "venv/bin/strip": "#!/bin/sh\nx\n",
		"far/hooks/pre-push": "#!/bin/sh\nexit 0\n", "sub/hooks/pre-push": "#!/bin/sh\nexit 0\n",
		"team/missing": "", "tools/missing": "", "team/hooks/post-commit": "",
	} {
		p.has(file, want)
	}
	if log := p.outside(".", "log", "--oneline"); strings.Count(log, "\n") != 2 {
		t.Errorf("git does not commit: %s", log)
	}
}

// The tools that change files, and a command that names one, changed what git is led to without the question that
// `.git/hooks` gets.
func TestAskedAboutWhatGitIsLedTo(t *testing.T) {
	t.Parallel()
	p := led(t)
	must(t, os.Symlink("team/hooks", filepath.Join(p.root, "link")))
	must(t, os.Link(filepath.Join(p.root, "tools/clean"), filepath.Join(p.root, "tools/other")))
	write := func(path string) (string, string) {
		return "write_file", replaytest.AsJSON(t, "path", path, "content", "new\n")
	}
	run := func(command string) (string, string) {
		return "run_shell", replaytest.AsJSON(t, "command", command)
	}
	type made func() (tool, args string)
	calls := func() map[string]made {
		return map[string]made{
			"hook":    func() (string, string) { return write("team/hooks/pre-push") },
			"link":    func() (string, string) { return write("link/post-merge") },
			"command": func() (string, string) { return run("echo new >>team/hooks/pre-commit") },
			"clean":   func() (string, string) { return run("echo new >>tools/clean") },
			"other":   func() (string, string) { return run("echo new >>tools/other") },
			"include": func() (string, string) { return write("team/missing") },
			"sub":     func() (string, string) { return write("sub/hooks/pre-commit") },
		}
	}
	for name, c := range calls() {
		tool, args := c()
		said, err := p.Call(tool, []byte(args))
		must(t, err)
		if !strings.Contains(said, "ASK_UNAVAILABLE") || !strings.Contains(said, ", since git obeys ") ||
			!strings.Contains(said, "permissions.unprotect = [") {
			t.Errorf("%s: nobody can be asked, and it says %s", name, said)
		}
	}
	for _, file := range []string{"team/hooks/pre-push", "team/hooks/post-merge", "team/missing", "far/hooks/pre-commit"} {
		p.has(file, "")
	}
	c := p.person()
	for name, call := range calls() {
		tool, args := call()
		a := c.Call(tool, args, func(q string) string {
			if !strings.Contains(q, ", since git obeys ") {
				t.Errorf("%s: the question does not say why: %s", name, q)
			}
			return replaytest.SayOnce
		})
		if a.Asked != 1 || a.Failed {
			t.Errorf("%s: asked %d times: %s", name, a.Asked, a.Text)
		}
	}
	for file, want := range map[string]string{
		"team/hooks/pre-push": "new\n", "team/hooks/post-merge": "new\n", "team/missing": "new\n", "far/hooks/pre-commit": "new\n",
		"team/hooks/pre-commit": "#!/bin/sh\nexit 0\nnew\n", "tools/clean": "#!/bin/sh\ncat\nnew\nnew\n",
	} {
		p.has(file, want)
	}
	tool, args := write("team/beside")
	if a := c.Call(tool, args, replaytest.Never(t)); a.Failed {
		t.Errorf("a file beside it: %s", a.Text)
	}
}
