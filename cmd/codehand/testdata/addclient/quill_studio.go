package clients

// quillStudio documents no names of variables in headers.
var quillStudio = Client{
	ID: "quill-studio", Title: "Quill Studio", Known: "documented",
	Names:    []string{"quill-studio*"},
	Profile:  Profile{Name: "quill-studio", Runes: 20_000, Images: FirstImage},
	Programs: []string{"quill"},
	Schemes:  []string{"quill"},
	Protects: []string{".quill/**"},
	Files:    home(".quill/mcp.json", ""),
	Texts: Texts{Local: servers("mcpServers", start), Remote: servers("mcpServers", plain),
		Bridge: servers("mcpServers", command)},
	Start: Start{NoPATH: true},
	Expansion: replacing(bracedEnv, func(s Surroundings, written string) (string, bool) {
		value, _ := s.Lookup(written[len("${env:") : len(written)-1])
		return value, true // it replaces a variable that is not set by nothing
	}),
}
