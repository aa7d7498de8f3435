package clients

// copilot does not replace names of variables in headers (github/copilot-cli#1232). The instructions that it reads:
// docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-custom-instructions.
var copilot = Client{
	ID: "copilot", Title: "Copilot CLI", Known: "measured, 1.0.102",
	Names: []string{"copilot-cli", "github-copilot-developer"},
	Profile: Profile{Name: "copilot-cli", Runes: 18_000, Bytes: 19_000, Images: AllImages, Found: ByDispatcher,
		DeclinesAlone: true, Loads: agentsMD + " " + copilotMD, Background: patient},
	Programs: []string{"copilot"},
	Protects: []string{".github/mcp.json"},
	Files:    home(".copilot/mcp-config.json", ".mcp.json"),
	Other:    []Files{{Project: ".github/mcp.json"}},
	Texts: Texts{
		Local: servers("mcpServers", func(l Launch) entry { return allTools(start(l)) }),
		Remote: servers("mcpServers", func(e Endpoint) entry {
			return entry{Type: "http", URL: e.URL, Tools: []string{"*"}}
		}),
		Bridge: servers("mcpServers", func(e Endpoint) entry { return allTools(command(e)) }),
	},
	Start: Start{Roots: RootProject},
}

// allTools is an entry of a program whose every tool Copilot CLI offers.
func allTools(e entry) entry {
	e.Type, e.Tools = "local", []string{"*"}
	return e
}
