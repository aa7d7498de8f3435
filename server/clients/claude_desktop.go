package clients

import "os"

// claudeDesktop hands on the variables in DEFAULT_INHERITED_ENV_VARS of the MCP SDK for TypeScript.
var claudeDesktop = Client{
	ID: "claude-desktop", Title: "Claude Desktop", Known: "documented",
	// Over HTTP it is Claude on the web, too, which gives itself either name.
	Names:   []string{"claude-ai"},
	Profile: Profile{Name: "claude-desktop", Runes: 20_000, Images: AllImages, Reopens: true},
	Schemes: []string{"claude"},
	Files: Files{"~/.config/Claude/claude_desktop_config.json",
		"~/Library/Application Support/Claude/claude_desktop_config.json",
		`%APPDATA%\Claude\claude_desktop_config.json`, ""},
	Other: []Files{{Linux: "~/.config/claude/claude_desktop_config.json"}},
	Texts: Texts{
		Local:      servers("mcpServers", start),
		Bridge:     servers("mcpServers", command),
		RemoteNote: "its file cannot hold remote servers; on another machine use the path of codehand there",
	},
	Start: Start{NoPATH: true, Dir: string(os.PathSeparator), Keeps: []string{"HOME", "LOGNAME", "PATH", "SHELL",
		"TERM", "USER", "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE",
		"SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PROGRAMFILES"}},
	Expansion: verbatim,
}
