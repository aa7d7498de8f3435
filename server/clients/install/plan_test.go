package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/clients/install/forms"
)

// TestDiffHidesOthers: what is shown of a change has our lines, and no text of another server.
func TestDiffHidesOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, client, first string }{
		{"in the line that gets a comma", "cursor", "{\n  \"mcpServers\": {\n    \"x\": {\"env\": {\"K\": \"hidden\"}}\n  }\n}\n"},
		{"beside our entry", "cursor", "{\n  \"mcpServers\": {\n    \"x\": {\n      \"url\": \"h?hidden\"\n    }\n  }\n}\n"},
		{"in one line", "cursor", `{"a":"hidden","l":["hidden"],"mcpServers":{"x":{"env":{"K":"\u0068idden"}}}}`},
		{"with a mark", "cursor", "\xef\xbb\xbf{\"a\":\"hidden\"}"},
		{"TOML without a line end", "codex", "[mcp_servers.x.env]\nK = \"hidden\""},
		{"YAML without a line end", "goose", "a: hidden"},
		{"YAML", "continue", "mcpServers:\n  - name: x\n    env: {K: hidden}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := here(t, "linux")
			goldenCase{before: c.first}.lay(t, p.real(fileOf(t, p, c.client)))
			change := must(Plan(p, c.client, wantOf(c.client)))
			out := change.Files[0].Diff
			mustApply(t, change)
			in := must(PlanRemoval(p, c.client, Want{})).Files[0].Diff
			for _, diff := range []string{out, in} {
				if strings.Contains(diff, "idden") || !strings.Contains(diff, wanted.Command) {
					t.Errorf("it shows\n%s", diff)
				}
			}
		})
	}
}

// TestOurs: an entry is ours by the name that a release has, by being this program under any name, or by a note.
func TestOurs(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"/opt/codehand": true, `C:\codehand.exe`: true, "/opt/codehand-linux-amd64": true,
		`C:\codehand-windows-arm64.exe`: true, "codehand_darwin_all": true,
		"/opt/codehand-wrapper": false, "/opt/codehand-linux-amd64.bak": false, "/opt/mycodehand": false, "docker": false,
	} {
		if got := (Entry{Name: forms.Name, Command: command}).Ours(); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
	p := here(t, "linux")
	mk(t, p, "/opt/hand", "/opt/other")
	w := wanted
	w.Command = "/opt/hand"
	for range 2 {
		mustApply(t, must(Plan(p, "cursor", w)))
	}
	if e := entryOf(t, p, "cursor"); e == nil || !e.Ours() {
		t.Errorf("with a note: %+v", e)
	}
	if err := os.Remove(filepath.Join(p.State, notesFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := PlanRemoval(p, "cursor", Want{Command: "/opt/other"}); err == nil {
		t.Error("another program's entry is taken out")
	}
	if err := os.Remove(p.real("/opt/other")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.real("/opt/hand"), p.real("/opt/other")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	mustApply(t, must(PlanRemoval(p, "cursor", Want{Command: "/opt/other"})))
}

// A cloned repository's link was followed, so that installing in a project wrote to a file elsewhere.
func TestProjectLinks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client, link, target string
		own, want            bool // own: the person's file, not the project's
	}{
		"a file":             {"claude-code", "P/.mcp.json", "E/victim.json", false, false},
		"a directory":        {"cursor", "P/.cursor", "E", false, false},
		"nothing there":      {"claude-code", "P/.mcp.json", "E/missing.json", false, false},
		"into .git":          {"claude-code", "P/.mcp.json", "P/.git/config.json", false, false},
		"inside the project": {"claude-code", "P/.mcp.json", "P/settings/mcp.json", false, true},
		"the person's own":   {"cursor", "H/.cursor", "E", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			at := func(path string) string {
				first, rest, _ := strings.Cut(path, "/")
				dir := map[string]string{"P": "project", "E": "elsewhere", "H": "home"}[first]
				return filepath.Join(base, dir, filepath.FromSlash(rest))
			}
			files := map[string]string{at("E/victim.json"): "{}\n", at("E/mcp.json"): "{}\n", at("P/.git/config.json"): "{}\n",
				at("P/settings/mcp.json"): "{}\n", at("H/x"): ""}
			for file, text := range files {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(at(c.target), at(c.link)); err != nil {
				t.Skipf("links cannot be made here: %v", err)
			}
			p := Places{GOOS: "linux", Home: at("H"), Project: at("P"), Env: func(string) string { return "" },
				Command: "/opt/codehand", State: filepath.Join(base, "state")}
			w := wanted
			w.Project = !c.own
			change, err := Plan(p, c.client, w)
			if err == nil {
				err = change.Apply(t.Context())
			}
			if (err == nil) != c.want {
				t.Errorf("error %v, want one: %v", err, !c.want)
			}
			if err != nil && !strings.Contains(err.Error(), at(c.target)) {
				t.Errorf("%v does not name %s", err, at(c.target))
			}
			changed := false
			for file, text := range files {
				now, err := os.ReadFile(file)
				changed = changed || err != nil || string(now) != text
			}
			if _, err := os.Lstat(at("E/missing.json")); err == nil || changed != c.want {
				t.Errorf("a file was changed: %v, want %v", changed, c.want)
			}
		})
	}
}
