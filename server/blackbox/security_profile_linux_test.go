package blackbox

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// unseen is what a command must not read.
const unseen = "what-no-command-sees\n"

// A profiled is a session whose commands run at sandbox level 3, without questions.
type profiled struct {
	*testing.T
	*replaytest.Spawned

	base string // holds everything; its directory home is the home directory
	root string // the first root
}

// profile starts a session in roots below a new directory with files in it, as name and text. More arguments follow.
func profile(t *testing.T, roots []string, files []string, env []string, args ...string) *profiled {
	t.Helper()
	h := settle(t)
	if confinedLevel(t, h) < 3 {
		t.Skip("needs a machine that proves sandbox level 3")
	}
	base, err := filepath.EvalSymlinks(leaktest.Dir(t))
	must(t, err)
	p := &profiled{T: t, base: base, root: filepath.Join(base, roots[0])}
	for _, dir := range append([]string{"home"}, roots...) {
		must(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	for i := 0; i < len(files); i += 2 {
		p.lay(files[i], files[i+1])
	}
	args = append([]string{"stdio", "--permissions-mode=bypassPermissions"}, args...)
	for _, root := range roots {
		args = append(args, filepath.Join(base, root))
	}
	cmd := exec.Command(replaytest.Program(t), args...)
	cmd.Dir = p.root
	cmd.Env = append(env, "HOME="+p.in("home"), "XDG_STATE_HOME="+p.in("state"))
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"))
	}
	p.Spawned = replaytest.Speak(t, cmd, "profile-test", false)
	return p
}

func (p *profiled) in(name string) string { return filepath.Join(p.base, filepath.FromSlash(name)) }

// lay makes a file as a person does.
func (p *profiled) lay(name, text string) {
	p.T.Helper()
	must(p.T, os.MkdirAll(filepath.Dir(p.in(name)), 0o755))
	must(p.T, os.WriteFile(p.in(name), []byte(text), 0o600))
}

// script runs a script, of which nothing but its name is in the text of the command, and returns what the call said. BASE
// in it is p.base.
func (p *profiled) script(text string) string {
	p.T.Helper()
	name := filepath.Join(p.root, "script.sh")
	must(p.T, os.WriteFile(name, []byte(strings.ReplaceAll(text, "BASE", p.base)), 0o600))
	args, err := json.Marshal(map[string]string{"command": "bash ./script.sh"})
	must(p.T, err)
	said, err := p.Call("run_shell", args)
	must(p.T, err)
	return said
}

// With a root below a directory that is named `worktrees`, a command forged a linked work tree, and the next one could
// write the directory above it: what widens a profile was read from files that a command had written.
func TestForgedWorkTreeWidensNothing(t *testing.T) {
	t.Parallel()
	const forge = `exec 2>/dev/null
		dir=BASE/other/worktrees/b
		echo "gitdir: $dir" > BASE/a/.git; echo "ref: refs/heads/main" > $dir/HEAD; echo ../.. > $dir/commondir
		echo BASE/a/.git > $dir/gitdir`
	const use = `exec 2>&1; echo x > BASE/other/.bashrc; echo x > BASE/other/objects/x; cat BASE/other/private`
	for name, files := range map[string][]string{
		"a directory": {"other/private", unseen},
		"a repository": {"other/private", unseen, "other/HEAD", "ref: refs/heads/main\n", "other/objects/x", "",
			"other/refs/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := profile(t, []string{"a", "other/worktrees/b"}, files, nil)
			p.script(forge)
			if out := p.script(use); strings.Contains(out, unseen) {
				t.Errorf("a command read beside its roots: %s", out)
			}
			if _, err := os.Stat(p.in("other/.bashrc")); err == nil {
				t.Error("a command wrote beside its roots")
			}
		})
	}
	// What was forged does not count for the next session, either.
	p := profile(t, []string{"a"}, []string{
		"other/private", unseen, "a/.git", "", "other/worktrees/b/HEAD", "ref: refs/heads/main\n",
	}, nil)
	p.lay("a/.git", "gitdir: "+p.in("other/worktrees/b"))
	p.lay("other/worktrees/b/commondir", "../..")
	p.lay("other/worktrees/b/gitdir", p.in("a/.git"))
	if out := p.script(use); strings.Contains(out, unseen) {
		t.Errorf("a command of a later session read beside its roots: %s", out)
	}
}

// A work tree of git whose repository lies elsewhere is worked in as before.
func TestLinkedWorkTreeIsWritten(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		unavailable(t, "git: %v", err)
	}
	base, err := filepath.EvalSymlinks(leaktest.Dir(t))
	must(t, err)
	for _, args := range [][]string{
		{"init", "-q", "repo"}, {"-C", "repo", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", "repo", "worktree", "add", "-q", "../w"},
	} {
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Env = base, []string{"HOME=" + base, "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	h := settle(t)
	if confinedLevel(t, h) < 3 {
		t.Skip("needs a machine that proves sandbox level 3")
	}
	cmd := h.command("stdio", "--permissions-mode=bypassPermissions", filepath.Join(base, "w"))
	cmd.Dir = filepath.Join(base, "w")
	p := &profiled{T: t, Spawned: replaytest.Speak(t, cmd, "profile-test", false), base: base, root: cmd.Dir}
	out := p.script(`git -c user.name=a -c user.email=a@b commit -q --allow-empty -m y && git log --format=%s
		echo x >> BASE/repo/.git/config`)
	config, err := os.ReadFile(filepath.Join(base, "repo/.git/config"))
	must(t, err)
	if !strings.Contains(out, "y\nx\n") || strings.Contains(string(config), "x\n") {
		t.Errorf("in a linked work tree: %s\n%s", out, config)
	}
}

// What a rule denies stays denied to commands, however many files there are, and whatever they shut.
func TestFloodKeepsDenyRules(t *testing.T) {
	t.Parallel()
	const config = "[permissions]\ndeny = [\"Read(secret.txt)\", \"Read(*.pem)\", \"Read(vault/**)\"]\n"
	p := profile(t, []string{"a"}, []string{
		"home/.config/codehand/config.toml", config, "a/secret.txt", unseen, "a/z/k.pem", unseen, "a/z/vault/x", unseen,
	}, nil)
	must(t, os.Link(p.in("a/secret.txt"), p.in("a/other-name")))
	const use = "chmod 755 z 2>/dev/null; cat secret.txt other-name z/k.pem z/vault/x 2>/dev/null; echo end"
	count := "200"
	if os.Getenv("CODEHAND_LONG") != "" {
		count = "20100"
	}
	p.script("mkdir .0; cd .0; seq " + count + " | xargs touch; cd ..; chmod 000 z")
	for range 2 {
		if out := p.script(use); strings.Contains(out, unseen) || !strings.Contains(out, "end") {
			t.Errorf("a command read what rules deny: %s", out)
		}
	}
	must(t, os.Chmod(p.in("a/z"), 0o755))
}

// Roots of principals, the data and the state below a directory that commands read for the sake of its bin in PATH, or
// that every command reads, were read by the commands of everyone.
func TestToolchainShowsNoWorkspace(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"tool", "opt"} {
		t.Run(where, func(t *testing.T) {
			h := settle(t)
			x, err := filepath.EvalSymlinks(leaktest.Dir(t))
			must(t, err)
			if where == "opt" {
				//nolint:usetesting // it has to be below /opt
				if x, err = os.MkdirTemp("/opt", "codehand-test-"); err != nil {
					t.Skip("needs to write to /opt")
				}
				t.Cleanup(func() { _ = os.RemoveAll(x) }) // it is this test's
			}
			for _, dir := range []string{"bin", "lib", "ws", "data"} {
				must(t, os.Mkdir(filepath.Join(x, dir), 0o755))
			}
			must(t, os.Chmod(filepath.Join(x, "data"), 0o700))
			must(t, os.WriteFile(filepath.Join(x, "bin", "seen"), []byte("#!/bin/sh\necho program\n"), 0o755))
			must(t, os.WriteFile(filepath.Join(x, "lib", "seen"), []byte("library\n"), 0o644))
			h.env = append([]string{"PATH=" + filepath.Join(x, "bin") + ":" + os.Getenv("PATH"), "HOME=" + h.home,
				"XDG_STATE_HOME=" + filepath.Join(h.home, "state")}, h.env[1:2]...)
			if confinedLevel(t, h) < 3 {
				t.Skip("needs a machine that proves sandbox level 3")
			}
			config := filepath.Join(h.home, ".config", "codehand", "config.toml")
			must(t, os.MkdirAll(filepath.Dir(config), 0o700))
			data := x + "/data"
			if where == "tool" { // beside the state of the server no toolchain is looked for
				data = leaktest.Dir(t)
				must(t, os.Chmod(data, 0o700))
			}
			must(t, os.WriteFile(config, []byte("http.data_dir = \""+data+"\"\n[principals.default]\nroots = [\""+
				x+"/ws/{principal}\"]\n"), 0o600))
			var people []*replaytest.HTTPClient
			var tokens []string
			for _, name := range []string{"alice", "bob"} {
				token, _ := h.run(0, "token", "new", name, "--mode", "bypassPermissions", "--max-mode", "bypassPermissions")
				tokens = append(tokens, strings.TrimSpace(token))
			}
			url := h.serve().url + "/mcp"
			for _, token := range tokens {
				c := (&replaytest.HTTPClient{T: t, URL: url, Token: token}).Hello()
				c.Does("write_file", `{"file_path":"secret.txt","content":"`+strings.TrimSpace(unseen)+`"}`)
				people = append(people, c)
			}
			must(t, os.WriteFile(filepath.Join(data, "secret.txt"), []byte(unseen), 0o600))
			people[1].Does("write_file", `{"file_path":"x.sh","content":"seen; cat `+x+`/lib/seen; rm secret.txt\n`+
				`find `+x+` -name secret.txt; grep -rls what-no `+x+`; ls `+x+`/ws"}`)
			out := people[1].Does("run_shell", `{"command":"bash ./x.sh"}`)
			if !strings.Contains(out, "program\nlibrary\n") || !strings.Contains(out, "bob") {
				t.Errorf("the toolchain or the workspace is missing: %s", out)
			}
			if strings.Contains(out, "secret.txt") || strings.Contains(out, "alice") { // x.sh itself is found
				t.Errorf("bob's command saw what is not bob's: %s", out)
			}
		})
	}
}

// Where the directories of people cannot be kept from each other, serve for several does not start, and says why.
func TestLayoutThatCannotBeHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config, want string }{
		"beside programs": {"[principals.default]\nroots = [\"/opt/{principal}\"]\n", "/opt holds /opt"},
		"opened to all": {"sandbox.readable = [\"WORK/ws/lib\"]\n[principals.default]\nroots = [\"WORK/ws/{principal}\"]\n",
			"which is kept from others"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(c.config, "/opt/") && os.Geteuid() != 0 {
				t.Skip("only root makes directories in /opt")
			}
			h := settle(t)
			must(t, os.MkdirAll(filepath.Join(h.work, "ws", "lib"), 0o700))
			config := filepath.Join(h.home, ".config", "codehand", "config.toml")
			must(t, os.MkdirAll(filepath.Dir(config), 0o700))
			must(t, os.WriteFile(config, []byte(strings.ReplaceAll(c.config, "WORK", h.work)), 0o600))
			h.run(0, "token", "new", "alice")
			cmd := h.command("serve", "--listen", "127.0.0.1:0")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// A command asked the session bus, which does anything outside of the sandbox. Neither it nor the display is there; what
// is open is told.
func TestDesktopIsClosed(t *testing.T) {
	t.Parallel()
	run, err := filepath.EvalSymlinks(leaktest.Dir(t))
	must(t, err)
	for _, name := range []string{"bus", "wayland-1", "agent"} {
		l, err := net.Listen("unix", filepath.Join(run, name))
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte("answer\n"))
				_ = c.Close()
			}
		}()
	}
	env := []string{"XDG_RUNTIME_DIR=" + run, "DBUS_SESSION_BUS_ADDRESS=unix:path=" + filepath.Join(run, "bus"),
		"WAYLAND_DISPLAY=wayland-1", "SSH_AUTH_SOCK=" + filepath.Join(run, "agent")}
	const use = `python3 - <<'EOF'
import os, socket
for name in ("bus", "wayland-1", "agent"):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(os.path.join("RUN", name))
        print(name, s.recv(10).decode().strip())
    except OSError:
        print(name, "closed")
EOF
env | grep -c -e "DBUS.*=." -e "WAYLAND.*=."`
	for _, c := range []struct {
		args []string
		env  []string
		want string
		gaps []string
	}{
		{nil, env, "bus closed\nwayland-1 closed\nagent answer\n0\n", []string{"ssh-agent"}},
		{[]string{"--sandbox-display=true"}, env, "bus closed\nwayland-1 answer\nagent answer\n1\n", []string{"ssh-agent", "display"}},
		{nil, append(env[:3:3], "SSH_AUTH_SOCK="+filepath.Join(run, "bus")), "bus closed\nwayland-1 closed\nagent closed\n0\n", nil},
		{[]string{"--sandbox-network=off"}, env, "bus closed\nwayland-1 closed\nagent closed\n0\n", nil},
	} {
		p := profile(t, []string{"a"}, nil, slices.Clone(c.env), c.args...)
		p.lay("a/script.sh", strings.ReplaceAll(use, "RUN", run))
		r, err := p.Request("tools/call", map[string]any{"name": "run_shell",
			"arguments": map[string]string{"command": "bash ./script.sh; true"}})
		must(t, err)
		var result struct {
			Content []struct{ Text string }
			Meta    struct {
				Sandbox struct{ Gaps []string } `json:"codehand/sandbox"`
			} `json:"_meta"`
		}
		must(t, json.Unmarshal(r.Result, &result))
		if got := result.Content[0].Text; !strings.HasPrefix(got, strings.TrimSpace(c.want)) {
			t.Errorf("%v: got %s, want %s", c.args, got, c.want)
		}
		for _, gap := range []string{"ssh-agent", "display"} {
			if slices.Contains(result.Meta.Sandbox.Gaps, gap) != slices.Contains(c.gaps, gap) {
				t.Errorf("%v: gaps %q, want %q", c.args, result.Meta.Sandbox.Gaps, c.gaps)
			}
		}
	}
}
