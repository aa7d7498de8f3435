package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// An Endpoint is what clients are to be connected with over HTTP.
type Endpoint struct {
	URL      string // of /mcp
	TokenEnv string // variable that holds the token where the client runs; "": none is needed
	Command  string // absolute path of codehand, for clients that are told a program; "": its name, to be found on PATH
}

// A Snippet is what somebody pastes into a file of one client.
type Snippet struct {
	Client string // id: claude-code
	Files  Files
	Text   string // the whole file if it was empty, else to be merged into it; ends in a line feed
	Note   string // what else must be known; "": nothing
}

// Files are the places of a client's file, as people write them.
type Files struct {
	Linux, MacOS, Windows string
	Project               string // below a project; "": there is none
}

// On returns the place for an operating system as Go names it. All but darwin and windows are as Linux.
func (f Files) On(goos string) string {
	switch goos {
	case "darwin":
		return f.MacOS
	case "windows":
		return f.Windows
	}
	return f.Linux
}

// A remote is how one client is told about an endpoint.
type remote struct {
	id     string
	files  Files
	text   func(Endpoint) string
	bridge func(Endpoint) string // nil: text serves tokens, too
	always bool                  // only the bridge works
	note   string
}

// home returns the places of a file that lies in the same directory below each user's home.
func home(path, project string) Files {
	return Files{"~/" + path, "~/" + path, `%USERPROFILE%\` + strings.ReplaceAll(path, "/", `\`), project}
}

// remotes are the clients that can be told by a file. A token's value is never part of what is pasted: where a header
// cannot name a variable, our bridge reads it instead. That Zed sends such a name as it stands is
// zed-industries/zed#60459; for Copilot CLI it is github/copilot-cli#1232; Cline, Continue, LM Studio and Kiro do not
// document one for headers.
var remotes = []remote{
	{id: "claude-code", files: Files{"~/.claude.json", "~/.claude.json", `%USERPROFILE%\.claude.json`, ".mcp.json"},
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "http", URL: e.URL, Headers: bearer(e, "${%s}")}
		})},
	{id: "claude-desktop", always: true, bridge: servers("mcpServers", command),
		files: Files{"~/.config/Claude/claude_desktop_config.json",
			"~/Library/Application Support/Claude/claude_desktop_config.json",
			`%APPDATA%\Claude\claude_desktop_config.json`, ""},
		note: "its file cannot hold remote servers; on another machine use the path of codehand there"},
	{id: "vscode", text: vscode, note: "or run: MCP: Add Server",
		files: Files{"~/.config/Code/User/mcp.json", "~/Library/Application Support/Code/User/mcp.json",
			`%APPDATA%\Code\User\mcp.json`, ".vscode/mcp.json"}},
	{id: "vscode-insiders", text: vscode, note: "or run: MCP: Add Server",
		files: Files{"~/.config/Code - Insiders/User/mcp.json",
			"~/Library/Application Support/Code - Insiders/User/mcp.json", `%APPDATA%\Code - Insiders\User\mcp.json`,
			".vscode/mcp.json"}},
	{id: "cursor", files: home(".cursor/mcp.json", ".cursor/mcp.json"),
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{URL: e.URL, Headers: bearer(e, "${env:%s}")}
		})},
	{id: "windsurf", files: home(".codeium/windsurf/mcp_config.json", ""),
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{ServerURL: e.URL, Headers: bearer(e, "${env:%s}")}
		})},
	{id: "zed", files: Files{"~/.config/zed/settings.json", "~/.config/zed/settings.json",
		`%APPDATA%\Zed\settings.json`, ""},
		text: servers("context_servers", func(e Endpoint) entry { return entry{Source: "custom", URL: e.URL} }),
		bridge: servers("context_servers", func(e Endpoint) entry {
			c := command(e)
			c.Source = "custom"
			return c
		})},
	{id: "codex", text: codex, files: home(".codex/config.toml", ".codex/config.toml"),
		note: "a project's file counts only if the project is trusted"},
	{id: "gemini", files: home(".gemini/settings.json", ".gemini/settings.json"),
		note: "a project's file counts only if the project is trusted",
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{HTTPURL: e.URL, Headers: bearer(e, "${%s}")}
		})},
	{id: "copilot", files: home(".copilot/mcp-config.json", ".mcp.json"),
		text: servers("mcpServers", func(e Endpoint) entry { return entry{Type: "http", URL: e.URL, Tools: all} }),
		bridge: servers("mcpServers", func(e Endpoint) entry {
			c := command(e)
			c.Type, c.Tools = "local", all
			return c
		})},
	{id: "opencode", files: home(".config/opencode/opencode.json", "opencode.json"),
		text: servers("mcp", func(e Endpoint) entry {
			return entry{Type: "remote", URL: e.URL, Headers: bearer(e, "{env:%s}"), Enabled: new(true)}
		})},
	{id: "cline", files: home(".cline/data/settings/cline_mcp_settings.json", ""),
		// Without a type Cline speaks SSE.
		text: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "streamableHttp", URL: e.URL, Disabled: new(false)}
		}),
		bridge: servers("mcpServers", func(e Endpoint) entry {
			c := command(e)
			c.Disabled, c.AutoApprove, c.Timeout = new(false), []string{}, 600
			return c
		})},
	{id: "continue", text: continueYAML, bridge: continueBridge,
		files: home(".continue/config.yaml", ".continue/mcpServers/codehand.yaml")},
	{id: "goose", text: goose,
		files: Files{"~/.config/goose/config.yaml", "~/.config/goose/config.yaml",
			`%APPDATA%\Block\goose\config\config.yaml`, ""}},
	{id: "lm-studio", files: home(".lmstudio/mcp.json", ""), text: servers("mcpServers", plain),
		bridge: servers("mcpServers", command)},
	{id: "junie", always: true, bridge: servers("mcpServers", command),
		files: home(".junie/mcp/mcp.json", ".junie/mcp/mcp.json")},
	{id: "kiro", files: home(".kiro/settings/mcp.json", ".kiro/settings/mcp.json"), text: servers("mcpServers", plain),
		bridge: servers("mcpServers", command)},
}

// all is how Copilot CLI is told to offer every tool of a server. It never changes.
var all = []string{"*"}

// Snippets returns one for each client that reads a file, in a fixed order.
func Snippets(e Endpoint) []Snippet {
	var out []Snippet
	for _, r := range remotes {
		s := Snippet{Client: r.id, Files: r.files, Note: r.note}
		if r.always || r.bridge != nil && e.TokenEnv != "" {
			s.Text = r.bridge(e)
		} else {
			s.Text = r.text(e)
		}
		out = append(out, s)
	}
	return out
}

// An entry is one server in a client's JSON. The fields stand in the order in which people write them.
type entry struct {
	Source      string            `json:"source,omitzero"`
	Type        string            `json:"type,omitzero"`
	URL         string            `json:"url,omitzero"`
	ServerURL   string            `json:"serverUrl,omitzero"`
	HTTPURL     string            `json:"httpUrl,omitzero"`
	Command     string            `json:"command,omitzero"`
	Args        []string          `json:"args,omitzero"`
	Tools       []string          `json:"tools,omitzero"`
	Headers     map[string]string `json:"headers,omitzero"`
	Env         map[string]string `json:"env,omitzero"`
	Enabled     *bool             `json:"enabled,omitzero"`
	Disabled    *bool             `json:"disabled,omitzero"`
	AutoApprove []string          `json:"autoApprove,omitzero"`
	Timeout     int               `json:"timeout,omitzero"` // seconds
}

func plain(e Endpoint) entry { return entry{URL: e.URL} }

// command is the entry of our bridge.
func command(e Endpoint) entry {
	return entry{Command: program(e), Args: bridgeArgs(e), Env: map[string]string{}}
}

// program is what starts our bridge. Programs with windows have no PATH of use, so it is a path where that is known.
func program(e Endpoint) string { return cmp.Or(e.Command, "codehand") }

func bridgeArgs(e Endpoint) []string {
	args := []string{"connect", e.URL}
	if e.TokenEnv != "" {
		args = append(args, "--token-env", e.TokenEnv)
	}
	return args
}

// bearer is the header with the client's own way to name a variable; nil: no token is needed.
func bearer(e Endpoint, variable string) map[string]string {
	if e.TokenEnv == "" {
		return nil
	}
	return map[string]string{"Authorization": "Bearer " + fmt.Sprintf(variable, e.TokenEnv)}
}

// servers is a file with our entry below key.
func servers(key string, make func(Endpoint) entry) func(Endpoint) string {
	return func(e Endpoint) string {
		return text(map[string]map[string]entry{key: {"codehand": make(e)}})
	}
}

// vscode asks for the token at the first use and keeps it itself.
func vscode(e Endpoint) string {
	type input struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		Description string `json:"description"`
		Password    bool   `json:"password"`
	}
	var file struct {
		Servers map[string]entry `json:"servers"`
		Inputs  []input          `json:"inputs,omitzero"`
	}
	ours := entry{Type: "http", URL: e.URL}
	if e.TokenEnv != "" {
		ours.Headers = map[string]string{"Authorization": "Bearer ${input:codehand}"}
		file.Inputs = []input{{"promptString", "codehand", "codehand token", true}}
	}
	file.Servers = map[string]entry{"codehand": ours}
	return text(file)
}

// text is v as JSON in one line. What comes here holds nothing that JSON cannot say.
func text[T any](v T) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // an & in an address stays readable
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return b.String()
}

// quoted is s in double quotes, as JSON, TOML and YAML read it.
func quoted(s string) string { return strings.TrimSuffix(text(s), "\n") }

// codex waits longer than it usually does, because a call may run for minutes.
func codex(e Endpoint) string {
	out := "[mcp_servers.codehand]\nurl = " + quoted(e.URL) + "\n"
	if e.TokenEnv != "" {
		out += "bearer_token_env_var = " + quoted(e.TokenEnv) + "\n"
	}
	return out + "tool_timeout_sec = 600\nstartup_timeout_sec = 20\n"
}

// continueHead is without what Continue refuses a file.
const continueHead = "name: codehand\nversion: \"1.0.0\"\nschema: \"v1\"\n"

func continueYAML(e Endpoint) string {
	return continueHead + "mcpServers:\n  - name: codehand\n    type: streamable-http\n    url: " + quoted(e.URL) + "\n"
}

func continueBridge(e Endpoint) string {
	return continueHead + "mcpServers:\n  - name: codehand\n    command: " + quoted(program(e)) + "\n    args: " +
		strings.TrimSuffix(text(bridgeArgs(e)), "\n") + "\n"
}

// goose replaces the names in headers that stand in env_keys.
func goose(e Endpoint) string {
	out := "extensions:\n  codehand:\n    name: codehand\n    type: streamable_http\n    uri: " + quoted(e.URL) + "\n"
	if e.TokenEnv != "" {
		out += "    env_keys: [" + quoted(e.TokenEnv) + "]\n    headers:\n      Authorization: " +
			quoted("Bearer ${"+e.TokenEnv+"}") + "\n"
	}
	return out + "    enabled: true\n    timeout: 300\n"
}
