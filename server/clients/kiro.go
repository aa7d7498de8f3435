package clients

// kiro documents no names of variables in headers.
var kiro = Client{
	ID: "kiro", Title: "Kiro", Known: "documented",
	Programs: []string{"kiro", "kiro-cli"},
	Schemes:  []string{"kiro"},
	Protects: []string{".kiro/settings/**", ".kiro/hooks/**"}, // specs and steering are documents
	Files:    home(".kiro/settings/mcp.json", ".kiro/settings/mcp.json"),
	Texts: Texts{Local: servers("mcpServers", start), Remote: servers("mcpServers", plain),
		Bridge: servers("mcpServers", command)},
	Start: Start{NoPATH: true, Roots: RootOptional, InHome: true},
}
