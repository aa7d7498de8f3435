package clients

var windsurf = Client{
	ID: "windsurf", Title: "Windsurf", Known: "documented",
	Names:    []string{"windsurf*"},
	Profile:  Profile{Name: "windsurf", Runes: 20_000, Images: AllImages},
	Programs: []string{"windsurf"},
	Schemes:  []string{"windsurf", "windsurf-next"},
	Protects: []string{".windsurf/**"},
	Files:    home(".codeium/windsurf/mcp_config.json", ""),
	Other:    []Files{home(".codeium/mcp_config.json", "")},
	Texts: Texts{
		Local: servers("mcpServers", start),
		Remote: servers("mcpServers", func(e Endpoint) entry {
			return entry{ServerURL: e.URL, Headers: bearer(e, "${env:%s}")}
		}),
	},
	Start:     Start{NoPATH: true, Roots: RootOptional, InHome: true},
	Expansion: replacing(bracedEnv, editorValue),
}
