package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// trap makes a program that leaves a file behind when it is started.
func (r *rig) trap(name string) string {
	r.Helper()
	r.executable(name, "#!/bin/sh\ntouch "+r.at("started")+"\n")
	return r.at(name)
}

// elsewhere copies the program under test, so that it is another file that works.
func (r *rig) elsewhere(name string) string {
	r.Helper()
	exe, err := os.ReadFile(r.machine.Program)
	r.must(err)
	r.mkdir(filepath.Dir(name))
	r.must(leaktest.WriteProgram(r.at(name), exe))
	return r.at(name)
}

// TestNotStarted: doctor in a fresh clone ran files of the clone, because an entry of the user or PATH led there.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		id      string // of the check
		why     string
		prepare func(*rig)
	}{
		{"npx", "handshake", "it is not codehand itself", func(r *rig) {
			r.trap("bin/npx") // starts ./node_modules/.bin/codehand
			r.entry("cursor", "npx", []string{"codehand", "stdio"}, nil)
		}},
		{"a shell with a script of the project", "handshake", "it is not codehand itself", func(r *rig) {
			r.trap("ws/s.sh")
			r.write("home/.config/Code/User/mcp.json",
				`{"servers": {"codehand": {"command": "/bin/sh", "args": ["${workspaceFolder}/s.sh"]}}}`)
			r.write("home/Library/Application Support/Code/User/mcp.json",
				`{"servers": {"codehand": {"command": "/bin/sh", "args": ["${workspaceFolder}/s.sh"]}}}`)
		}},
		{"PATH has the top of the project", "handshake", "whose files need not be yours", func(r *rig) {
			r.mkdir("ws/.git")
			r.inside("ws/sub", r.trap("ws/codehand"))
			r.entry("cursor", "codehand", []string{"stdio"}, nil)
		}},
		{"PATH has the directory above", "handshake", "above the working directory", func(r *rig) {
			r.inside("ws/sub", r.trap("ws/codehand"))
			r.entry("cursor", "codehand", []string{"stdio"}, nil)
		}},
		{"a link out of the project", "handshake", "whose files need not be yours", func(r *rig) {
			r.must(os.Symlink(r.trap("sys/codehand"), r.at("ws/codehand")))
			r.entry("cursor", r.at("ws/codehand"), []string{"stdio"}, nil)
		}},
		{"a link into the project", "handshake", "whose files need not be yours", func(r *rig) {
			r.trap("ws/codehand")
			r.must(os.Symlink(r.at("ws/codehand"), r.at("sys/codehand")))
			r.entry("cursor", r.at("sys/codehand"), []string{"stdio"}, nil)
		}},
		{"a link to a launcher", "handshake", "it is not codehand itself", func(r *rig) {
			r.must(os.Symlink(r.trap("sys/shim"), r.at("sys/codehand")))
			r.entry("cursor", r.at("sys/codehand"), []string{"stdio"}, nil)
		}},
		{"a script of this name", "handshake", "it is not codehand itself", func(r *rig) {
			r.entry("cursor", r.trap("sys/codehand"), []string{"stdio"}, nil)
		}},
		{"the directory of the entry", "handshake", "whose files need not be yours", func(r *rig) {
			r.trap("other/codehand")
			r.write("home/.cursor/mcp.json", `{"mcpServers": {"codehand": {"command": "./codehand", "args": ["stdio"],
				"cwd": "`+r.at("other")+`"}}}`)
		}},
		// Settings name hooks, which run when a session starts.
		{"settings of the project", "handshake", "its settings lie in", func(r *rig) {
			r.entry("cursor", r.machine.Program, []string{"stdio", "--config=${workspaceFolder}/c.toml"}, nil)
		}},
		{"settings of the project behind a flag", "handshake", "its settings lie in", func(r *rig) {
			r.entry("cursor", r.machine.Program, []string{"stdio", "--config", "c.toml"}, nil)
		}},
		{"version: in the working directory", "binary", "whose files need not be yours", func(r *rig) {
			r.inside("ws", r.trap("ws/codehand"))
		}},
		{"version: at the top of the project", "binary", "whose files need not be yours", func(r *rig) {
			r.mkdir("ws/.git")
			r.inside("ws/sub", r.trap("ws/bin/codehand"))
		}},
		{"version: a script", "binary", "it is not codehand itself", func(r *rig) { r.inside("ws", r.trap("sys/codehand")) }},
	} {
		t.Run(strings.NewReplacer(" ", "_", ":", "").Replace(c.name), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.prepare(r)
			text := ""
			for _, f := range r.find(c.id) {
				text += string(f.Level) + " " + f.Text + " -> " + f.Fix + "\n"
			}
			if _, err := os.Stat(r.at("started")); err == nil {
				t.Error("it was started")
			}
			if !strings.Contains(text, "not started: ") || !strings.Contains(text, c.why) {
				t.Errorf("no %q:\n%s", c.why, text)
			}
		})
	}
}

// inside makes dir the working directory, and puts the directory of a program first in PATH.
func (r *rig) inside(dir, program string) {
	r.mkdir(dir)
	r.machine.Config.WorkDir, r.machine.Config.Roots = r.at(dir), nil
	r.env("PATH", filepath.Dir(program)+":"+r.machine.getenv("PATH"))
}

// TestStartedElsewhere: another file of this program, outside of the project, is started as its client would.
func TestStartedElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"opt/codehand", "opt/codehand-linux-amd64"} {
		r := newRig(t)
		r.entry("cursor", r.elsewhere(name), []string{"stdio"}, nil)
		text := ""
		for _, f := range r.find("handshake") {
			text += f.Text + "\n"
		}
		if !strings.Contains(text, "cursor: legacy: 2 tools") {
			t.Errorf("%s was not started:\n%s", name, text)
		}
	}
}

// TestProgramName: only names that releases of codehand have count.
func TestProgramName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"codehand": true, "codehand.exe": true, "codehand-linux-amd64": true, "codehand-windows-arm64.exe": true,
		"codehand.js": false, "codehand.cmd": false, "codehand-shim": false, "mycodehand": false, "npx": false,
		"codehand-linux-amd64-x": false, "": false,
	} {
		if got := programName().MatchString(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
