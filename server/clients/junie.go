package clients

var junie = Client{
	ID: "junie", Title: "Junie", Known: "documented",
	Programs: []string{"junie"},
	Protects: []string{".junie/mcp/**"},
	Files:    home(".junie/mcp/mcp.json", ".junie/mcp/mcp.json"),
	Other:    []Files{home(".junie/mcp.json", "")},
	Texts:    Texts{Local: servers("mcpServers", start), Bridge: servers("mcpServers", command)},
	Start:    Start{NoPATH: true, Roots: RootOptional, InHome: true},
}
