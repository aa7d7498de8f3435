package clients

import (
	"encoding/base64"
	"net/url"
)

// cursor reads instructions as of cursor.com/docs/context/rules.
var cursor = Client{
	ID: "cursor", Title: "Cursor", Known: "documented",
	Names: []string{"cursor-vscode"},
	Profile: Profile{Name: "cursor", Runes: 20_000, Images: AllImages, Numbers: true,
		Loads: agentsMD + " " + cursorRules},
	Programs: []string{"cursor"},
	Schemes:  []string{"cursor", "cursor-nightly"},
	Protects: []string{".cursor/**"},
	Files:    home(".cursor/mcp.json", ".cursor/mcp.json"),
	Texts: Texts{
		Local: servers("mcpServers", start),
		Remote: servers("mcpServers", func(e Endpoint) entry {
			return entry{URL: e.URL, Headers: bearer(e, "${env:%s}")}
		}),
		Link: func(name string, entry map[string]any) string {
			return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + name + "&config=" +
				url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(line(entry))))
		},
	},
	Start:     Start{NoPATH: true, Roots: RootVariable},
	Expansion: replacing(braced, editorValue),
}
