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
