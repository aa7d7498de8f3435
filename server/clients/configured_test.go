package clients_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codehand/server/clients"
)

// TestFindConfigured: entries that start codehand are found in every form that clients keep them in.
func TestFindConfigured(t *testing.T) {
	t.Parallel()
	home, project := t.TempDir(), t.TempDir()
	files := map[string]string{}
	for _, s := range clients.Snippets(clients.Endpoint{URL: "http://h/mcp", TokenEnv: "T", Command: "/opt/codehand"}) {
		if s.Client == "vscode-insiders" {
			continue // as vscode
		}
		path := strings.NewReplacer("~", home, "%USERPROFILE%", home, "%APPDATA%", home, `\`, "/").Replace(s.Files.On(runtime.GOOS))
		files[filepath.FromSlash(path)] = s.Text
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		write(path, text)
	}
	write(filepath.Join(home, ".claude.json"), `{"projects":{"/p":{"mcpServers":{"tools":{"type":"stdio","command":"/gone/codehand","args":["stdio"]}}}}}`)
	write(filepath.Join(home, ".gemini/settings.json"), "\xef\xbb\xbf{ // a comment\n \"mcpServers\": { /* ours */ \"codehand\": {\"command\": \"env\", \"args\": [\"a//b\", \"/*\"],}, },\n}")
	write(filepath.Join(home, ".codex/config.toml"), "[mcp_servers.codehand]\ncommand = 'C:\\bin\\codehand.exe'\n")
	write(filepath.Join(home, ".config/opencode/opencode.json"), `{"mcp":{"codehand":{"type":"local","command":["/o/codehand","stdio"]}}}`)
	write(filepath.Join(home, ".cursor/mcp.json"), `{"mcpServers":{"codehand":`)
	write(filepath.Join(project, ".cursor/mcp.json"), `{"mcpServers":{"other":{"command":"x"}}}`)
	write(filepath.Join(project, ".mcp.json"), `{"mcpServers":{"codehand":{"command":"codehand"}}}`)
	got := map[string]string{}
	for _, c := range clients.FindConfigured(clients.Places{Home: home, Getenv: func(string) string { return "" }, Projects: []string{project}}) {
		text := c.Command
		if c.Err != nil {
			text = "error"
		}
		place := c.Client
		if strings.HasPrefix(c.File, project) {
			place += " in the project"
		}
		got[place] = text
	}
	want := map[string]string{
		"claude-code": "/gone/codehand", "claude-code in the project": "codehand", "gemini": "env", "codex": `C:\bin\codehand.exe`,
		"opencode": "/o/codehand", "cursor": "error",
		"zed": "/opt/codehand", "copilot": "/opt/codehand", "cline": "/opt/codehand", "continue": "/opt/codehand", "lm-studio": "/opt/codehand",
		"junie": "/opt/codehand", "kiro": "/opt/codehand", "claude-desktop": "/opt/codehand",
	}
	if runtime.GOOS != "linux" {
		t.Skip("the paths above are those of Linux")
	}
	for place, command := range want {
		if got[place] != command {
			t.Errorf("%s: %q, want %q", place, got[place], command)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %v", got)
	}
}
