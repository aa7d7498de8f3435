package clients

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// codex hands on the variables in DEFAULT_ENV_VARS of codex-rs/rmcp-client/src/utils.rs. The instructions that it
// reads: developers.openai.com/codex/guides/agents-md.
var codex = Client{
	ID: "codex", Title: "Codex", Known: "measured, 0.169.0",
	Names: []string{"codex-mcp-client", "Codex"},
	Profile: Profile{Name: "codex", Runes: codexUnknown, Bytes: codexUnknown, Images: AllImages, DeferAll: true,
		Hints: true, Found: ByDispatcher, NoTextFields: true, DeclinesAlone: true, Patches: true, Loads: agentsMD,
		Background: patient},
	Programs: []string{"codex"},
	Protects: []string{".codex/**"},
	Files:    home(".codex/config.toml", ".codex/config.toml"),
	Moved:    "CODEX_HOME",
	Texts: Texts{Local: codexLocal, Remote: codexRemote,
		Note: "a project's file counts only if the project is trusted"},
	Start: Start{Roots: RootProject, Keeps: []string{"HOME", "LOGNAME", "PATH", "SHELL", "USER",
		"__CF_USER_TEXT_ENCODING", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "PATHEXT", "COMSPEC", "SYSTEMROOT",
		"SYSTEMDRIVE", "USERNAME", "USERDOMAIN", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "PROGRAMFILES",
		"PROGRAMFILES(X86)", "PROGRAMW6432", "PROGRAMDATA", "LOCALAPPDATA", "APPDATA", "TEMP", "TMP", "POWERSHELL",
		"PWSH"}},
	Expansion: verbatim,
}

// Codex cuts the middle out of results by the model that it talks to. For one that it does not know the limit is 10,000
// bytes, for others 10,000 tokens of four bytes each; a result may have 1.2 times as much, with the lines that Codex
// puts before it. Models that call tools from JavaScript print them, and of what they print 10,000 tokens are shown.
const (
	codexUnknown = 11_900
	codexKnown   = 47_900
	codexPrinted = 39_500
)

// codexModels are how the names of the models begin that Codex 0.169.0 knows, with what it shows of a result; more of a
// name makes no difference to it. Those that a later version knows as well get less than they might. It never changes.
var codexModels = map[string]int{
	"gpt-5.5": codexKnown, "gpt-5.6-": codexPrinted, "gpt-6-": codexPrinted, "gpt-6.1-": codexPrinted,
	"gpt-daybreak-": codexPrinted, "codex-auto-review": codexPrinted,
}

// ForModel is the profile while the client talks to this model; "": it does not say to which.
func (p Profile) ForModel(model string) Profile {
	for prefix, limit := range codexModels {
		if p.Name == "codex" && strings.HasPrefix(model, prefix) {
			p.Runes, p.Bytes = limit, limit
		}
	}
	return p
}

// codexTimes is longer than Codex usually waits, because a call may run for minutes.
const codexTimes = "tool_timeout_sec = 600\nstartup_timeout_sec = 20\n"

func codexLocal(l Launch) string {
	out := "[mcp_servers.codehand]\ncommand = " + quoted(cmp.Or(l.Command, ours)) + "\nargs = " + line(localArgs(l)) +
		"\n" + codexTimes
	if len(l.Env) > 0 {
		out += "\n[mcp_servers.codehand.env]\n"
		for _, name := range slices.Sorted(maps.Keys(l.Env)) {
			out += quoted(name) + " = " + quoted(l.Env[name]) + "\n"
		}
	}
	return out
}

func codexRemote(e Endpoint) string {
	out := "[mcp_servers.codehand]\nurl = " + quoted(e.URL) + "\n"
	if e.TokenEnv != "" {
		out += "bearer_token_env_var = " + quoted(e.TokenEnv) + "\n"
	}
	return out + codexTimes
}
