package clients

// cline hands the model the JSON of the whole result, cut to 8,000 characters. It documents no names of variables in
// headers.
var cline = Client{
	ID: "cline", Title: "Cline", Known: "measured, CLI 3.0.65",
	Names: []string{"@cline/core", "Cline", "Roo-Code", "Kilo-Code"},
	Profile: Profile{Name: "cline", Runes: 7_900, JSON: 7_900, Images: ImagesAsText, NoMeta: true,
		Found: ByDispatcher},
	Programs: []string{"cline"},
	Files:    home(".cline/data/settings/cline_mcp_settings.json", ""),
	// The extension for VS Code does not read the file of the program.
	Twin: codeUser("Code", "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", ""),
	Texts: Texts{
		Local: servers("mcpServers", func(l Launch) entry { return waiting(start(l)) }),
		// Without a type Cline speaks SSE.
		Remote: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "streamableHttp", URL: e.URL, Disabled: new(false)}
		}),
		Bridge: servers("mcpServers", func(e Endpoint) entry { return waiting(command(e)) }),
	},
	Start: Start{Roots: RootProject},
}

// waiting is an entry of a program for whose calls Cline waits.
func waiting(e entry) entry {
	e.Disabled, e.AutoApprove, e.Timeout = new(false), []string{}, 600
	return e
}
