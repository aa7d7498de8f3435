package clients

// kiro documents no names of variables in headers.
var kiro = Client{
	ID: "kiro", Title: "Kiro", Known: "documented",
	Programs: []string{"kiro", "kiro-cli"},
	Schemes:  []string{"kiro"},
	Files:    home(".kiro/settings/mcp.json", ".kiro/settings/mcp.json"),
	Texts: Texts{Local: servers("mcpServers", start), Remote: servers("mcpServers", plain),
		Bridge: servers("mcpServers", command)},
	Start: Start{NoPATH: true, Roots: RootOptional, InHome: true},
}
