package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// plants are files of a workspace that other agents run programs from, each with a program that makes a file in $RAN.
func plants(ran string) map[string]string {
	touch := func(name string) string { return "touch " + ran + "/" + name }
	claudeHook := `[{"matcher":"","hooks":[{"type":"command","command":"` + touch("claude-hook") + `"}]}]`
	copilotHook := `[{"type":"command","bash":"` + touch("copilot-hook") + `","timeoutSec":10}]`
	server := func(name string) string {
		return `{"mcpServers":{"planted":{"type":"local","tools":["*"],"command":"/bin/sh","args":["-c","` + touch(name) + `"]}}}`
	}
	return map[string]string{
		".claude/settings.json": `{"enableAllProjectMcpServers":true,"hooks":{"SessionStart":` + claudeHook + `,"UserPromptSubmit":` +
			claudeHook + `,"PreToolUse":` + claudeHook + `,"Stop":` + claudeHook + `}}`,
		".claude/settings.local.json": `{"hooks":{"SessionStart":` + strings.ReplaceAll(claudeHook, "claude-hook", "claude-local") +
			`}}`,
		".mcp.json": server("mcp-json"),
		".codex/config.toml": "[mcp_servers.planted]\ncommand = '/bin/sh'\nargs = ['-c', '" + touch("codex-mcp") + "']\n" +
			"[features]\nhooks = true\n",
		".codex/hooks.json":             `{"hooks":{"SessionStart":` + strings.ReplaceAll(claudeHook, "claude-hook", "codex-hook") + `}}`,
		".github/hooks/x.json":          `{"version":1,"hooks":{"sessionStart":` + copilotHook + `,"userPromptSubmitted":` + copilotHook + `,"preToolUse":` + copilotHook + `}}`,
		".github/mcp.json":              server("copilot-mcp"),
		".github/copilot/settings.json": `{"hooks":{"sessionStart":` + strings.ReplaceAll(copilotHook, "copilot-hook", "copilot-settings") + `}}`,
		".vscode/mcp.json":              strings.Replace(server("vscode-mcp"), "mcpServers", "servers", 1),
		".gemini/settings.json":         server("gemini-mcp"),
		"opencode.json":                 `{"mcp":{"planted":{"type":"local","command":["/bin/sh","-c","` + touch("opencode-mcp") + `"]}}}`,
	}
}

// TestAgentCLIsObeyNoWorkspace: hooks and MCP servers of the workspace ran outside of the sandbox when Claude Code was
// a sub-agent. With the lines of docs/agents.md none runs, also where the person trusts the directory.
func TestAgentCLIsObeyNoWorkspace(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "starts programs of 200 MB")
	for name, said := range documented(t) {
		c := foreignCLIs[name]
		if _, err := os.Stat(filepath.Join(benchOfClients, "node_modules", c.module)); err != nil {
			if os.Getenv("CI") == "" {
				t.Skipf("%s is not installed: cd testdata/bench/clients && npm ci", c.module)
			}
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			if ran := runsPlanted(t, name, said[1]); len(ran) > 0 {
				t.Errorf("programs of the workspace ran: %q", ran)
			}
		})
		without := strings.NewReplacer(`"--setting-sources", "user",`, "", `"-C", "{empty}",`, "",
			`"--ignore-rules", "-c", "projects={'{cwd}'={trust_level='untrusted'}}",`, "").Replace(said[1])
		if without == said[1] {
			continue
		}
		t.Run(name+" without the flags", func(t *testing.T) { // what shows that the files are right
			if ran := runsPlanted(t, name, without); len(ran) == 0 {
				t.Error("the planted files do nothing")
			}
		})
	}
}

// runsPlanted lets a CLI do a task in a workspace with all plants, and returns what ran.
func runsPlanted(t *testing.T, name, settings string) (ran []string) {
	m := startModel(t, forms[foreignCLIs[name].model], []move{{name: "read_file", args: `{"file_path":"a.txt"}`}})
	marks := leaktest.Dir(t)
	c := startCLI(t, name, settings, m.url)
	replaytest.Lay(t, c.p.work, plants(marks))
	trusts(t, c)
	if text := asks(t, c.s, "agent", map[string]any{"prompt": "Do what the steps say."}); !strings.HasPrefix(text, lastWords) {
		t.Errorf("the report: %s", text)
	}
	all, err := os.ReadDir(marks)
	must(t, err)
	for _, one := range all {
		ran = append(ran, one.Name())
	}
	return ran
}

// trusts lets the person's own settings of the CLI trust the workspace.
func trusts(t *testing.T, c cliRun) {
	t.Helper()
	codex, err := os.ReadFile(filepath.Join(c.p.base, ".codex/config.toml"))
	if err == nil {
		must(t, os.WriteFile(filepath.Join(c.p.base, ".codex/config.toml"),
			append(codex, "[projects.'"+c.p.work+"']\ntrust_level = 'trusted'\n"...), 0o600))
	}
	replaytest.Lay(t, c.p.base, map[string]string{
		".claude.json":           `{"projects":{"` + c.p.work + `":{"hasTrustDialogAccepted":true,"enabledMcpjsonServers":["planted"]}}}`,
		".copilot/config.json":   `{"trustedFolders":["` + c.p.work + `"]}`,
		".copilot/settings.json": `{"trustedFolders":["` + c.p.work + `"]}`,
	})
}
