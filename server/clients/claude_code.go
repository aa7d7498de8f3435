package clients

import "strings"

// claudeCode keeps entries for one directory, and settings that deny its own tools, too; install and doctor know them.
// The instructions that it reads: code.claude.com/docs/en/memory.
var claudeCode = Client{
	ID: "claude-code", Title: "Claude Code", Known: "measured, 2.1.329",
	Names: []string{"claude-code"},
	Profile: Profile{Name: "claude-code", Runes: 50_000, Images: AllImages, DeferAll: true, Found: ByName,
		Numbers: true, Marks: true, Loads: claudeMD, Background: patient},
	Programs: []string{"claude"},
	Protects: []string{".mcp.json", ".claude.json"}, // .claude has rules of its own in tools/guarded
	Files:    Files{"~/.claude.json", "~/.claude.json", `%USERPROFILE%\.claude.json`, ".mcp.json"},
	Moved:    "CLAUDE_CONFIG_DIR",
	Texts: Texts{
		Local: servers("mcpServers", func(l Launch) entry {
			e := start(l)
			e.Type = "stdio"
			return e
		}),
		Remote: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "http", URL: e.URL, Headers: bearer(e, "${%s}")}
		}),
	},
	Start:     Start{Roots: RootProject},
	Expansion: replacing(braced, claudeValue),
}

// claudeValue knows ${NAME} and ${NAME:-default}. Claude Code starts nothing for a variable that is not set.
func claudeValue(s Surroundings, written string) (string, bool) {
	name, otherwise, has := strings.Cut(written[2:len(written)-1], ":-")
	if value, ok := s.Lookup(name); ok {
		return value, true
	}
	return otherwise, has
}
