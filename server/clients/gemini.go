package clients

import "strings"

// gemini reads instructions as of geminicli.com/docs/cli/gemini-md.
var gemini = Client{
	ID: "gemini", Title: "Gemini CLI", Known: "measured, 0.61.0",
	Names: []string{"gemini-cli-mcp-client"},
	Profile: Profile{Name: "gemini", Runes: 38_000, Images: AllImages, Found: ByName, Loads: geminiMD,
		Background: patient},
	Programs: []string{"gemini"},
	Protects: []string{".gemini/**"},
	Files:    home(".gemini/settings.json", ".gemini/settings.json"),
	Texts: Texts{
		Local: servers("mcpServers", start),
		Remote: servers("mcpServers", func(e Endpoint) entry {
			return entry{HTTPURL: e.URL, Headers: bearer(e, "${%s}")}
		}),
		Note: "a project's file counts only if the project is trusted",
	},
	Start: Start{Roots: RootProject, Drops: func(name string) bool {
		return strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN")
	}},
	Expansion: replacing(shellLike, geminiValue),
}

// geminiValue knows $NAME and ${NAME}; one that is not set stays as it is written.
func geminiValue(s Surroundings, written string) (string, bool) {
	if value, ok := s.Lookup(strings.Trim(written, "${}")); ok {
		return value, true
	}
	return written, !strings.Contains(written, ":-") // newer versions may have defaults
}
