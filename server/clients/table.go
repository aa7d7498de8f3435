package clients

import "strings"

// A told is how one client is told about codehand.
type told struct {
	id     string
	files  Files
	other  []Files
	twin   Files
	roots  Rooting
	gui    bool // it has windows, so no PATH of use
	local  func(Launch) string
	text   func(Endpoint) string
	bridge func(Endpoint) string // nil: text serves tokens, too
	always bool                  // only the bridge works
	note   string
}

// home returns the places of a file that lies in the same directory below each user's home.
func home(path, project string) Files {
	return Files{"~/" + path, "~/" + path, `%USERPROFILE%\` + strings.ReplaceAll(path, "/", `\`), project}
}

// codeUser returns the places of a file below the user's directory of VS Code.
func codeUser(code, path, project string) Files {
	return Files{"~/.config/" + code + "/User/" + path, "~/Library/Application Support/" + code + "/User/" + path,
		`%APPDATA%\` + code + `\User\` + strings.ReplaceAll(path, "/", `\`), project}
}

// tellable are the clients that can be told by a file. A token's value is never part of what is pasted: where a header
// cannot name a variable, our bridge reads it instead. That Zed sends such a name as it stands is
// zed-industries/zed#60459; for Copilot CLI it is github/copilot-cli#1232; Cline, Continue, LM Studio and Kiro do not
// document one for headers.
var tellable = []told{
	{id: "claude-code", files: Files{"~/.claude.json", "~/.claude.json", `%USERPROFILE%\.claude.json`, ".mcp.json"},
		roots: RootProject,
		local: servers("mcpServers", func(l Launch) entry {
			e := start(l)
			e.Type = "stdio"
			return e
		}),
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "http", URL: e.URL, Headers: bearer(e, "${%s}")}
		})},
	{id: "claude-desktop", gui: true, local: servers("mcpServers", start),
		always: true, bridge: servers("mcpServers", command),
		files: Files{"~/.config/Claude/claude_desktop_config.json",
			"~/Library/Application Support/Claude/claude_desktop_config.json",
			`%APPDATA%\Claude\claude_desktop_config.json`, ""},
		other: []Files{{Linux: "~/.config/claude/claude_desktop_config.json"}},
		note:  "its file cannot hold remote servers; on another machine use the path of codehand there"},
	{id: "vscode", gui: true, roots: RootVariable, local: vscodeLocal, text: vscode, note: "or run: MCP: Add Server",
		files: codeUser("Code", "mcp.json", ".vscode/mcp.json")},
	{id: "vscode-insiders", gui: true, roots: RootVariable, local: vscodeLocal, text: vscode,
		note: "or run: MCP: Add Server", files: codeUser("Code - Insiders", "mcp.json", ".vscode/mcp.json")},
	{id: "cursor", gui: true, roots: RootVariable, local: servers("mcpServers", start),
		files: home(".cursor/mcp.json", ".cursor/mcp.json"),
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{URL: e.URL, Headers: bearer(e, "${env:%s}")}
		})},
	{id: "windsurf", gui: true, roots: RootOptional, local: servers("mcpServers", start),
		files: home(".codeium/windsurf/mcp_config.json", ""), other: []Files{home(".codeium/mcp_config.json", "")},
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{ServerURL: e.URL, Headers: bearer(e, "${env:%s}")}
		})},
	{id: "zed", gui: true, roots: RootOptional,
		files: Files{"~/.config/zed/settings.json", "~/.config/zed/settings.json",
			`%APPDATA%\Zed\settings.json`, ""},
		other: []Files{{MacOS: "~/Library/Application Support/Zed/settings.json"}},
		local: servers("context_servers", func(l Launch) entry {
			e := start(l)
			e.Source = "custom"
			return e
		}),
		text: servers("context_servers", func(e Endpoint) entry { return entry{Source: "custom", URL: e.URL} }),
		bridge: servers("context_servers", func(e Endpoint) entry {
			c := command(e)
			c.Source = "custom"
			return c
		})},
	{id: "codex", roots: RootProject, local: codexLocal, text: codex,
		files: home(".codex/config.toml", ".codex/config.toml"),
		note:  "a project's file counts only if the project is trusted"},
	{id: "gemini", roots: RootProject, local: servers("mcpServers", start),
		files: home(".gemini/settings.json", ".gemini/settings.json"),
		note:  "a project's file counts only if the project is trusted",
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{HTTPURL: e.URL, Headers: bearer(e, "${%s}")}
		})},
	{id: "copilot", roots: RootProject, files: home(".copilot/mcp-config.json", ".mcp.json"),
		other: []Files{{Project: ".github/mcp.json"}},
		local: servers("mcpServers", func(l Launch) entry {
			e := start(l)
			e.Type, e.Tools = "local", all
			return e
		}),
		text: servers("mcpServers", func(e Endpoint) entry { return entry{Type: "http", URL: e.URL, Tools: all} }),
		bridge: servers("mcpServers", func(e Endpoint) entry {
			c := command(e)
			c.Type, c.Tools = "local", all
			return c
		})},
	{id: "opencode", roots: RootProject, local: opencodeLocal,
		files: home(".config/opencode/opencode.json", "opencode.json"),
		other: []Files{home(".config/opencode/opencode.jsonc", "opencode.jsonc")},
		text: servers("mcp", func(e Endpoint) entry {
			return entry{Type: "remote", URL: e.URL, Headers: bearer(e, "{env:%s}"), Enabled: new(true)}
		})},
	{id: "cline", roots: RootProject, files: home(".cline/data/settings/cline_mcp_settings.json", ""),
		// The extension for VS Code does not read the file of the program.
		twin: codeUser("Code", "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", ""),
		local: servers("mcpServers", func(l Launch) entry {
			e := start(l)
			e.Disabled, e.AutoApprove, e.Timeout = new(false), []string{}, 600
			return e
		}),
		// Without a type Cline speaks SSE.
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "streamableHttp", URL: e.URL, Disabled: new(false)}
		}),
		bridge: servers("mcpServers", func(e Endpoint) entry {
			c := command(e)
			c.Disabled, c.AutoApprove, c.Timeout = new(false), []string{}, 600
			return c
		})},
	{id: "continue", roots: RootProject, local: continueLocal, text: continueYAML, bridge: continueBridge,
		files: home(".continue/config.yaml", ".continue/mcpServers/codehand.yaml")},
	{id: "goose", gui: true, local: gooseLocal, text: goose,
		files: Files{"~/.config/goose/config.yaml", "~/.config/goose/config.yaml",
			`%APPDATA%\Block\goose\config\config.yaml`, ""}},
	{id: "lm-studio", gui: true, local: servers("mcpServers", start), files: home(".lmstudio/mcp.json", ""),
		other: []Files{home(".cache/lm-studio/mcp.json", "")},
		text:  servers("mcpServers", plain), bridge: servers("mcpServers", command)},
	{id: "junie", gui: true, roots: RootOptional, local: servers("mcpServers", start),
		always: true, bridge: servers("mcpServers", command),
		files: home(".junie/mcp/mcp.json", ".junie/mcp/mcp.json"), other: []Files{home(".junie/mcp.json", "")}},
	{id: "kiro", gui: true, roots: RootOptional, local: servers("mcpServers", start),
		files: home(".kiro/settings/mcp.json", ".kiro/settings/mcp.json"), text: servers("mcpServers", plain),
		bridge: servers("mcpServers", command)},
}

// all is how Copilot CLI is told to offer every tool of a server. It never changes.
var all = []string{"*"}
