package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// mk makes empty files, or directories where the name ends in a slash, as people see them.
func mk(t *testing.T, p Places, names ...string) {
	t.Helper()
	for _, name := range names {
		at := p.real(strings.TrimSuffix(name, "/"))
		dir := filepath.Dir(at)
		if strings.HasSuffix(name, "/") {
			dir = at
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir != at {
			if err := os.WriteFile(at, nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPlacesGolden: where the file of each client is, on each system and in a project.
func TestPlacesGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, goos := range []string{"linux", "darwin", "windows"} {
		p := here(t, goos)
		p.Project = p.join(p.Home, "src/app")
		fmt.Fprintf(&b, "%s\n", goos)
		for _, client := range Clients() {
			for _, project := range []bool{false, true} {
				w := wanted
				w.Roots, w.Project = []string{p.Home}, project
				c, err := Plan(p, client, w)
				switch {
				case errors.Is(err, ErrNoProject):
				case err != nil:
					t.Errorf("%s: %v", client, err)
				default:
					fmt.Fprintf(&b, "  %-16s %s\n", client, c.Files[0].File)
				}
			}
		}
	}
	golden(t, filepath.Join("testdata", "places.txt"), []byte(b.String()))
}

// TestOtherSystems installs where the files of macOS and Windows are, and takes out again.
func TestOtherSystems(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"darwin", "windows"} {
		p := here(t, goos)
		w := wanted
		w.Roots = []string{p.join(p.Home, "src")}
		if goos == "windows" {
			w.Command = `C:\Program Files\codehand\codehand.exe`
		}
		for _, client := range Clients() {
			c, err := Plan(p, client, w)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if e := entryOf(t, p, client); e == nil || e.Command != w.Command || e.Args[1] != w.Roots[0] || !e.Ours() {
				t.Errorf("%s, %s: %+v", goos, client, e)
			}
			if c, err = PlanRemoval(p, client, Want{}); err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		left, err := os.ReadDir(p.Root)
		if err != nil || len(left) != 0 {
			t.Errorf("%s: it leaves %v, %v", goos, left, err)
		}
	}
}

// TestWhichFile: of the places where a file may be the one that is there counts, then the one whose directory is, and a
// variable that moves the directory before all.
func TestWhichFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ goos, client, there, variable, want string }{
		{"linux", "claude-desktop", "", "", "/home/you/.config/Claude/claude_desktop_config.json"},
		{"linux", "claude-desktop", "/home/you/.config/claude/", "", "/home/you/.config/claude/claude_desktop_config.json"},
		{"linux", "opencode", "/home/you/.config/opencode/opencode.jsonc", "", "/home/you/.config/opencode/opencode.jsonc"},
		{"linux", "windsurf", "/home/you/.codeium/mcp_config.json", "", "/home/you/.codeium/mcp_config.json"},
		{"darwin", "zed", "/Users/you/Library/Application Support/Zed/", "",
			"/Users/you/Library/Application Support/Zed/settings.json"},
		{"windows", "lm-studio", `C:\Users\you\.cache\lm-studio\`, "", `C:\Users\you\.cache\lm-studio\mcp.json`},
		{"linux", "claude-code", "/home/you/.claude.json", "CLAUDE_CONFIG_DIR=/etc/c", "/etc/c/.claude.json"},
		{"linux", "claude-code", "/home/you/.claude.json", "CLAUDE_CONFIG_DIR=c", "/home/you/.claude.json"},
		{"windows", "codex", "", `CODEX_HOME=D:\codex`, `D:\codex\config.toml`},
		{"windows", "codex", "", `CODEX_HOME=\\server\home\codex`, `\\server\home\codex\config.toml`},
		{"windows", "goose", "", `APPDATA=\\server\home`, `\\server\home\Block\goose\config\config.yaml`},
		{"linux", "zed", "", "XDG_CONFIG_HOME=/data/c", "/data/c/zed/settings.json"},
		{"linux", "opencode", "/data/c/opencode/opencode.jsonc", "XDG_CONFIG_HOME=/data/c",
			"/data/c/opencode/opencode.jsonc"},
		{"linux", "goose", "", "XDG_CONFIG_HOME=c", "/home/you/.config/goose/config.yaml"},
		{"linux", "cursor", "", "XDG_CONFIG_HOME=/data/c", "/home/you/.cursor/mcp.json"},
		{"darwin", "zed", "", "XDG_CONFIG_HOME=/data/c", "/Users/you/.config/zed/settings.json"},
	} {
		p := here(t, c.goos)
		if key, value, ok := strings.Cut(c.variable, "="); ok {
			usual := p.Env
			p.Env = func(k string) string {
				if k == key {
					return value
				}
				return usual(k)
			}
		}
		if c.there != "" {
			mk(t, p, strings.ReplaceAll(c.there, `\`, "/"))
		}
		if got := fileOf(t, p, c.client); got != c.want {
			t.Errorf("%s, %s with %s %s: %s, want %s", c.goos, c.client, c.there, c.variable, got, c.want)
		}
	}
}

// TestPresent: a client is there if its directory or its program is.
func TestPresent(t *testing.T) {
	t.Parallel()
	present := func(p Places) string {
		var all []string
		for _, f := range Look(p) {
			if f.Present {
				all = append(all, f.Client)
			}
		}
		return strings.Join(all, " ")
	}
	p := here(t, "linux")
	mk(t, p, "/home/you/.config/")
	if got := present(p); got != "" {
		t.Errorf("nobody is there: %q", got)
	}
	mk(t, p, "/home/you/.cursor/", "/home/you/.claude.json", "/opt/bin/codex", "/opt/bin/gemini/")
	p.Env = func(key string) string { return map[string]string{"PATH": "bin::/opt/bin"}[key] }
	if got := present(p); got != "claude-code cursor codex" {
		t.Errorf("there: %q", got)
	}
	q := here(t, "darwin")
	mk(t, q, "/Users/you/.claude/")
	if got := present(q); got != "claude-code" {
		t.Errorf("there: %q", got)
	}
	w := here(t, "windows")
	mk(t, w, "C:/bin/code.cmd", "C:/Users/you/AppData/Roaming/Claude/")
	usual := w.Env
	w.Env = func(key string) string {
		if key == "PATH" {
			return `C:\Windows;C:\bin`
		}
		return usual(key)
	}
	if got := present(w); got != "claude-desktop vscode" {
		t.Errorf("there: %q", got)
	}
}

// TestTwin: Cline's extension for VS Code has a file of its own, which is written where its directory is there.
func TestTwin(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	const twin = "/home/you/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
	mk(t, p, twin)
	c, err := Plan(p, "cline", wanted)
	if err != nil || len(c.Files) != 2 || c.Files[1].File != twin+"cline_mcp_settings.json" {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, f := range Look(p) {
		if f.Client == "cline" && f.Entry != nil {
			rows++
		}
	}
	if rows != 2 {
		t.Errorf("found %d times", rows)
	}
}

// TestPath: clients with windows are told the PATH, those of a terminal and projects are not, and what a person set in
// the entry stays.
func TestPath(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	p.Project = "/home/you/src/app"
	w := wanted
	w.Path, w.Env = "/opt/bin:/bin", map[string]string{"CODEHAND_MODE": "plan"}
	for client, want := range map[string]string{"cursor": "/opt/bin:/bin", "codex": ""} {
		for range 2 {
			c, err := Plan(p, client, w)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Env = nil
		}
		w.Env = map[string]string{"CODEHAND_MODE": "plan"}
		e := entryOf(t, p, client)
		if e == nil || e.Env["PATH"] != want || e.Env["CODEHAND_MODE"] != "plan" {
			t.Errorf("%s: %+v", client, e)
		}
	}
	mk(t, p, "/opt/bin/", "/bin/")
	w.Env, w.Path = nil, "/elsewhere/bin"
	if c, err := Plan(p, "cursor", w); err != nil || len(c.Files) != 0 {
		t.Errorf("a PATH alone: %+v, %v", c, err)
	}
	if err := os.Remove(p.real("/opt/bin")); err != nil {
		t.Fatal(err)
	}
	if c, err := Plan(p, "cursor", w); err != nil || len(c.Files) != 1 {
		t.Errorf("a PATH of which a directory is gone: %+v, %v", c, err)
	}
	w.Project = true
	c, err := Plan(p, "cursor", w)
	if err != nil || strings.Contains(string(c.Files[0].New), "/opt/bin") {
		t.Errorf("in a project: %+v, %v", c, err)
	}
}

// TestModes: what is made is for its user alone, what was there keeps its mode, and so does a copy of it.
func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes are not those of Windows")
	}
	p := here(t, "linux")
	apply(t, p, "install")
	for name, want := range map[string]os.FileMode{p.real("/home/you/.cursor/mcp.json"): 0o600,
		p.real("/home/you/.cursor"): 0o700, filepath.Join(p.State, notesFile): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	q, file := laid(t, "{}", "install")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	apply(t, q, "install")
	kept, err := filepath.Glob(file + ".codehand-*.bak")
	if err != nil || len(kept) != 1 || read(t, kept[0]) != "{}" {
		t.Fatalf("kept: %q, %v", kept, err)
	}
	for _, name := range []string{file, kept[0]} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestContinueKeepsModels: Continue would load a new config.yaml in place of an older config.json, and all models of
// the person would be gone.
func TestContinueKeepsModels(t *testing.T) {
	t.Parallel()
	for _, older := range []string{"config.json", "config.ts"} {
		p := here(t, "linux")
		p.Project = "/home/you/src/app"
		mk(t, p, "/home/you/.continue/"+older)
		_, err := Plan(p, "continue", wanted)
		if e, ok := errors.AsType[*RefusedError](err); !ok || !strings.Contains(e.Snippet, "mcpServers:") {
			t.Errorf("%s: %v", older, err)
		}
		w := wanted
		w.Project = true
		if c, err := Plan(p, "continue", w); err != nil || len(c.Files) != 1 {
			t.Errorf("%s, in a project: %+v, %v", older, c, err)
		}
		mk(t, p, "/home/you/.continue/config.yaml")
		if c, err := Plan(p, "continue", wanted); err != nil || len(c.Files) != 1 {
			t.Errorf("%s beside config.yaml: %+v, %v", older, c, err)
		}
	}
}

// TestShare: a home directory on a share keeps both of its first separators.
func TestShare(t *testing.T) {
	t.Parallel()
	p := here(t, "windows")
	p.Home = `\\server\home\you`
	if got, want := fileOf(t, p, "cursor"), `\\server\home\you\.cursor\mcp.json`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := p.dir(`\\server\home\you`), `\\server\home`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
