package blackbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// inFull returns a household whose commands the kernel confines at level 3, or skips the test.
func inFull(t *testing.T) *household {
	t.Helper()
	h := settle(t)
	if level := confinedLevel(t, h); level < 3 {
		t.Skipf("it needs sandbox level 3, and this machine has proven %d; codehand doctor says what helps", level)
	}
	return h
}

// stdio starts stdio over the workspace, where no command is a question. args are more of its arguments.
func (h *household) stdio(args ...string) *replaytest.Spawned {
	h.t.Helper()
	cmd := h.command(append([]string{"stdio", h.work, "--permissions-mode=bypassPermissions"}, args...)...)
	return replaytest.Speak(h.t, cmd, "claude-code", false)
}

// installed are the programs that .ci/run installs, as far as commands of these tests need them.
var installed = []string{"bash", "curl", "gcc", "git", "go", "npm", "python3"}

// needs skips a test whose programs are missing, but not in CI where .ci/run installs them.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		for _, there := range installed {
			if there == name && os.Getenv("CI") != "" {
				t.Fatalf("it needs %s: .ci/run installs it", name)
			}
		}
		t.Skipf("it needs %s: install it", name)
	}
}

// runs runs a command that must not fail, and returns what it printed, also if the machine is so slow that the call does
// not wait for it.
func runs(t *testing.T, p *replaytest.Spawned, command string) string {
	t.Helper()
	text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command, "timeout", 600_000))
	failed := strings.HasPrefix(text, "!")
	if strings.HasPrefix(text, "Still running ") {
		id := replaytest.JobID.FindString(text)
		for now := "running for "; strings.HasPrefix(now, "running for "); text += now {
			now = p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", id, "block", true))
			failed = strings.HasPrefix(now, "failed ")
		}
	}
	if failed {
		t.Errorf("%s\n%s", command, text)
	}
	return text
}

// warmGo fills the cache of go in the private caches of a workspace with the packages of the library that tests want,
// which take a processor 12 s. goCache is what $GOCACHE is for a command there.
func warmGo(t *testing.T, goCache string) {
	t.Helper()
	dir, err := replaytest.Build("go-cache", func(dir string) error {
		work := leaktest.Dir(t)
		replaytest.Lay(t, work, goModule)
		cmd := exec.Command("go", "test", "./...")
		cmd.Dir, cmd.Env = work, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "GOCACHE=" + dir, "GOWORK=off"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	must(t, err)
	must(t, os.RemoveAll(goCache))
	must(t, os.CopyFS(goCache, os.DirFS(dir)))
}

// gitIn runs git in dir, outside of every sandbox.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	args = append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)
	cmd := exec.Command("git", args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// goModule is a module without dependencies whose one test passes.
var goModule = map[string]string{
	"go.mod":          "module example.com/m\n\ngo 1.21\n",
	"main.go":         "package main\n\nimport \"example.com/m/hello\"\n\nfunc main() { println(hello.Hi()) }\n",
	"hello/h.go":      "package hello\n\nfunc Hi() string { return \"hi\" }\n",
	"hello/h_test.go": "package hello\n\nimport \"testing\"\n\nfunc TestHi(t *testing.T) {\n\tif Hi() != \"hi\" {\n\t\tt.Fatal()\n\t}\n}\n",
}

// TestRealWork: what people do in a workspace all day, the kernel must let pass at level 3, without a network, too.
func TestRealWork(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]struct {
		needs   []string
		files   map[string]string
		command string
		prints  string // a regular expression
		leaves  string // a file of the workspace
	}{
		"go": {
			[]string{"go"}, goModule, "go build ./... && go test ./... && go build -o m . && ./m", `ok\s+example\.com/m/hello(?s:.*)\nhi`, "m",
		},
		"npm": {
			[]string{"npm"}, map[string]string{
				"package.json":     `{"name":"app","version":"1.0.0"}`,
				"dep/package.json": `{"name":"dep","version":"1.0.0","main":"i.js"}`,
				"dep/i.js":         "module.exports = 'from dep'\n",
			}, `npm install ./dep && node -e 'console.log(require("dep"))'`, "added 1 package(?s:.*)from dep", "package-lock.json",
		},
		"venv": {
			[]string{"python3"}, nil, `python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'`, `/v\n`, "v/pyvenv.cfg",
		},
		"make": {
			[]string{"make"}, map[string]string{"Makefile": "all: out\nout: in\n\tcp in out\n\t@echo made\n", "in": "x\n"},
			"make && make", `made\n(?s:.*)Nothing to be done`, "out",
		},
		"cc": {
			[]string{"gcc"}, map[string]string{"a.c": "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }\n"},
			"gcc -o a a.c && ./a", "compiled", "a",
		},
		"cargo": {
			[]string{"cargo", "rustc"}, map[string]string{
				"Cargo.toml": "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/main.rs": "fn main() { println!(\"rusty\"); }\n",
			}, "cargo build --offline && target/debug/m", "rusty", "Cargo.lock",
		},
		"temporary files": {
			nil, nil, `f=$(mktemp) && echo kept > "$f" && cat "$f" && mkdir -p "$TMPDIR/d" /var/tmp/e && echo done > t`, "kept", "t",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := inFull(t)
			needs(t, work.needs...)
			if name == "cargo" {
				version := exec.Command("cargo", "--version")
				if version.Env = h.env; version.Run() != nil {
					t.Skip("cargo is rustup's, which finds no toolchain in another home: install the cargo of the system")
				}
			}
			replaytest.Lay(t, h.work, work.files)
			p := h.stdio("--sandbox-network=off")
			if name == "go" {
				warmGo(t, strings.TrimSpace(runs(t, p, `touch x; echo "$GOCACHE"`)))
			}
			text := runs(t, p, work.command)
			if !regexp.MustCompile(work.prints).MatchString(text + "\n") {
				t.Errorf("printed, not %s: %s", work.prints, text)
			}
			if _, err := os.Stat(filepath.Join(h.work, work.leaves)); err != nil {
				t.Errorf("its result is not there afterwards: %v", err)
			}
		})
	}
}

// TestRealGit: commits and stashes pass, also in a linked work tree, whose repository lies outside of the roots.
func TestRealGit(t *testing.T) {
	t.Parallel()
	for _, linked := range []bool{false, true} {
		t.Run(map[bool]string{false: "repository", true: "linked"}[linked], func(t *testing.T) {
			t.Parallel()
			h := inFull(t)
			needs(t, "git")
			repo := h.work
			if linked {
				repo = leaktest.Dir(t)
				replaytest.Lay(t, repo, map[string]string{"a.txt": "one\n"})
			}
			gitIn(t, repo, "init", "-q", "-b", "main")
			gitIn(t, repo, "config", "user.name", "T")
			gitIn(t, repo, "config", "user.email", "t@example.com")
			gitIn(t, repo, "add", "a.txt")
			gitIn(t, repo, "commit", "-q", "-m", "first")
			if linked {
				must(t, os.RemoveAll(h.work))
				gitIn(t, repo, "worktree", "add", "-q", "-b", "side", h.work)
			}
			p := h.stdio("--sandbox-network=off")
			for _, command := range []string{
				"echo two >> a.txt && git add a.txt && git commit -m second",
				"echo three >> a.txt && git stash && git diff --exit-code && git stash pop && git commit -am third",
				"git checkout -b other && git reset --hard HEAD^ && git merge --no-edit - && git tag v1 && git gc -q",
			} {
				runs(t, p, command)
			}
			if got := gitIn(t, h.work, "log", "--format=%s"); got != "third\nsecond\nfirst\n" {
				t.Errorf("the log says %q", got)
			}
			gitIn(t, repo, "fsck", "--strict")
			runs(t, p, "git branch -u main")
			if got := gitIn(t, h.work, "rev-parse", "--abbrev-ref", "@{upstream}"); got != "main\n" {
				t.Errorf("the upstream is %q", got)
			}
			// What the profile of a linked work tree opens of the repository is not its configuration.
			text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command",
				"git config core.pager x; echo x > '"+repo+"/.git/hooks/pre-commit'"))
			config, err := os.ReadFile(filepath.Join(repo, ".git/config"))
			must(t, err)
			if _, err := os.Stat(filepath.Join(repo, ".git/hooks/pre-commit")); !strings.HasPrefix(text, "!") || err == nil ||
				strings.Contains(string(config), "pager") {
				t.Errorf("the repository's configuration or hooks were changed: %s\n%s", text, config)
			}
		})
	}
}

// TestRealWorktree: at level 3 a work tree was made and could be worked in, and was never removed: what git keeps of it
// was protected, so that the removal stopped half-way and claimed that nothing had changed.
func TestRealWorktree(t *testing.T) {
	t.Parallel()
	h := inFull(t)
	needs(t, "git")
	gitIn(t, h.work, "init", "-q", "-b", "main")
	gitIn(t, h.work, "config", "user.name", "T")
	gitIn(t, h.work, "config", "user.email", "t@example.com")
	gitIn(t, h.work, "add", "a.txt")
	gitIn(t, h.work, "commit", "-q", "-m", "first")
	replaytest.Lay(t, h.work, map[string]string{".git/hooks/post-checkout": "#!/bin/sh\ntouch '" + h.work + "/hooked'\n"})
	must(t, os.Chmod(filepath.Join(h.work, ".git/hooks/post-checkout"), 0o700))
	p := h.stdio("--sandbox-network=off")
	for _, c := range [][2]string{
		{"enter_worktree", `{"name":"kept"}`},
		{"run_shell", `{"command":"echo two >> a.txt && git commit -qam second && git status --short"}`},
		{"exit_worktree", `{"action":"keep"}`},
		{"run_shell", `{"command":"git merge -q codehand/kept && grep two a.txt"}`},
		{"enter_worktree", `{"name":"gone"}`},
		{"run_shell", `{"command":"echo three >> a.txt"}`},
		{"exit_worktree", `{"action":"remove","discard_changes":true}`},
	} {
		if text := p.Must(t, c[0], c[1]); strings.HasPrefix(text, "! ") {
			t.Errorf("%s %s: %s", c[0], c[1], text)
		}
	}
	trees, branches := gitIn(t, h.work, "worktree", "list"), gitIn(t, h.work, "branch")
	if strings.Contains(trees+branches, "gone") || !strings.Contains(branches, "codehand/kept") {
		t.Errorf("left are\n%s%s", trees, branches)
	}
	if _, err := os.Stat(filepath.Join(h.work, "hooked")); err == nil {
		t.Error("a hook of the repository ran")
	}
}

// TestRealServer: a server that one command starts as a job is reached by the next command, where the network is on, as
// it is on stdio. Where it is off, the failure names the setting.
func TestRealServer(t *testing.T) {
	t.Parallel()
	h := inFull(t)
	needs(t, "python3", "curl")
	for network, reached := range map[string]bool{"": true, "off": false} {
		var args []string
		if network != "" {
			args = append(args, "--sandbox-network="+network)
		}
		p := h.stdio(args...)
		started := p.Must(t, "run_shell", `{"command":"python3 -u -m http.server --bind 127.0.0.1 0","run_in_background":true}`)
		id := replaytest.JobID.FindString(started)
		port := regexp.MustCompile(`port (\d+)`)
		said := ""
		replaytest.Until(t, "the server of the job says its port", func() bool {
			said += p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", id))
			return port.MatchString(said)
		})
		text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "curl -sS http://127.0.0.1:"+port.FindStringSubmatch(said)[1]+"/a.txt"))
		if reached && text != "one\n" && text != "one" {
			t.Errorf("with a network: %s", text)
		}
		if !reached && (!strings.HasPrefix(text, "!") || !strings.Contains(text, "sandbox.network")) {
			t.Errorf("without a network: %s", text)
		}
		p.Must(t, "job_stop", replaytest.AsJSON(t, "job_id", id))
	}
}

// TestNoNetworkIsNamed: a model that misses the network must not look for a mistake of its own, whatever program it used.
// Names in .invalid exist nowhere.
func TestNoNetworkIsNamed(t *testing.T) {
	t.Parallel()
	h := inFull(t)
	p := h.stdio("--sandbox-network=off")
	replaytest.Lay(t, h.work, map[string]string{"go.mod": "module example.com/m\n\ngo 1.21\n", "package.json": `{"name":"app","version":"1.0.0"}`})
	for command, program := range map[string]string{
		"curl -sS http://a.invalid":                                   "curl",
		"curl -s http://a.invalid":                                    "curl",
		"curl -sS http://192.0.2.1":                                   "curl",
		"curl -sS http://127.0.0.1:9":                                 "curl",
		"curl -sS http://a.invalid | head -1":                         "curl",
		"curl -sS http://a.invalid || true":                           "curl",
		"wget http://a.invalid":                                       "wget",
		"wget -q http://a.invalid":                                    "wget",
		"git clone https://a.invalid/b":                               "git",
		"git clone git://192.0.2.1/b":                                 "git",
		"git ls-remote ssh://git@a.invalid/b":                         "ssh",
		"npm install no-such-package --fetch-retries 0":               "npm",
		"GOFLAGS=-mod=mod GOPROXY=https://a.invalid go get a.invalid": "go",
		`python3 -m pip install --target p --retries 1 --index-url https://a.invalid no-such-package`: "pip3",
		`python3 -c 'import urllib.request as u; u.urlopen("http://a.invalid")'`:                      "python3",
		`python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80))'`:                     "python3",
		`node -e 'fetch("http://a.invalid").catch(e => { console.error(e.cause); process.exit(1) })'`: "node",
		"echo > /dev/tcp/192.0.2.1/80": "bash",
	} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("not tried, since %s is not installed: %s", program, command)
			continue
		}
		if text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command)); !strings.Contains(text, "; the user can change sandbox.network]") {
			t.Errorf("%s does not name the setting:\n%s", command, text)
		}
	}
	started := p.Must(t, "run_shell", `{"command":"echo > /dev/tcp/192.0.2.1/80","run_in_background":true}`)
	text := p.Must(t, "job_output", replaytest.AsJSON(t, "job_id", replaytest.JobID.FindString(started), "block", true))
	if !strings.Contains(text, "; the user can change sandbox.network]") {
		t.Errorf("a job does not name the setting: %s", text)
	}
	if text := p.Must(t, "run_shell", `{"command":"echo 'grep: Could not resolve host'"}`); strings.Contains(text, "sandbox.network") {
		t.Errorf("a command that missed nothing: %s", text)
	}
}
