package clients

import "cmp"

// continueCLI documents no names of variables in headers.
var continueCLI = Client{
	ID: "continue", Title: "Continue", Known: "measured, CLI 1.5.47",
	Names:    []string{"continue-cli-client", "continue-client"},
	Profile:  Profile{Name: "continue", Runes: 20_000, Images: ImagesAsText, Found: ByDispatcher},
	Programs: []string{"cn"},
	Protects: []string{".continue/**"},
	Files:    home(".continue/config.yaml", ".continue/mcpServers/codehand.yaml"),
	Texts:    Texts{Local: continueLocal, Remote: continueRemote, Bridge: continueBridge},
	Start:    Start{Roots: RootProject},
}

// continueHead is without what Continue refuses a file.
const continueHead = "name: codehand\nversion: \"1.0.0\"\nschema: \"v1\"\n"

func continueLocal(l Launch) string {
	out := continueHead + "mcpServers:\n  - name: codehand\n    command: " + quoted(cmp.Or(l.Command, ours)) +
		"\n    args: " + line(localArgs(l)) + "\n"
	if len(l.Env) > 0 {
		out += "    env: " + line(l.Env) + "\n"
	}
	return out
}

func continueRemote(e Endpoint) string {
	return continueHead + "mcpServers:\n  - name: codehand\n    type: streamable-http\n    url: " + quoted(e.URL) + "\n"
}

func continueBridge(e Endpoint) string {
	return continueHead + "mcpServers:\n  - name: codehand\n    command: " + quoted(program(e)) + "\n    args: " +
		line(bridgeArgs(e)) + "\n"
}
