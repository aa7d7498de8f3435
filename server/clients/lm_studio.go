package clients

// lmStudio documents no names of variables in headers.
var lmStudio = Client{
	ID: "lm-studio", Title: "LM Studio", Known: "documented",
	Names:    []string{"lmstudio*"},
	Profile:  Profile{Name: "lm-studio", Runes: 8_000, Images: AllImages},
	Programs: []string{"lms"},
	Files:    home(".lmstudio/mcp.json", ""),
	Other:    []Files{home(".cache/lm-studio/mcp.json", "")},
	Texts: Texts{Local: servers("mcpServers", start), Remote: servers("mcpServers", plain),
		Bridge: servers("mcpServers", command)},
	Start: Start{NoPATH: true},
}
