package clients

import (
	"cmp"
	"strings"
)

// opencode reads instructions as of opencode.ai/docs/rules.
var opencode = Client{
	ID: "opencode", Title: "opencode", Known: "measured, 1.18.33",
	Names: []string{"opencode"},
	Profile: Profile{Name: "opencode", Runes: 45_000, Bytes: 48_000, Lines: 1_900, Images: AllImages,
		Found: ByNameInOrder, Numbers: true, Loads: agentsMD, Background: patient},
	Programs: []string{"opencode"},
	Protects: []string{"opencode.json", "opencode.jsonc", ".opencode/**"},
	Files:    home(".config/opencode/opencode.json", "opencode.json"),
	Other:    []Files{home(".config/opencode/opencode.jsonc", "opencode.jsonc")},
	Texts: Texts{
		Local: opencodeLocal,
		Remote: servers("mcp", func(e Endpoint) entry {
			return entry{Type: "remote", URL: e.URL, Headers: bearer(e, "{env:%s}"), Enabled: new(true)}
		}),
	},
	Start:     Start{Roots: RootProject},
	Expansion: replacing(pattern(`\{(env|file):[^}]*\}`), opencodeValue),
}

// opencodeLocal has the program and its arguments in one list.
func opencodeLocal(l Launch) string {
	type entry struct {
		Type        string            `json:"type"`
		Command     []string          `json:"command"`
		Environment map[string]string `json:"environment"`
		Enabled     bool              `json:"enabled"`
	}
	e := entry{"local", append([]string{cmp.Or(l.Command, ours)}, localArgs(l)...), environment(l), true}
	return text(map[string]map[string]entry{"mcp": {ours: e}})
}

// opencodeValue knows {env:NAME}; a file is read by the client.
func opencodeValue(s Surroundings, written string) (string, bool) {
	variable, ok := strings.CutPrefix(written, "{env:")
	value, _ := s.Lookup(strings.TrimSuffix(variable, "}"))
	return value, ok
}
