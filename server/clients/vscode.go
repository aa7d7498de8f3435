package clients

import (
	"maps"
	"net/url"
	"strings"
)

// vscode reads instructions as of code.visualstudio.com/docs/agent-customization/custom-instructions. Its schemes are
// those of its builds, too.
var vscode = Client{
	ID: "vscode", Title: "VS Code", Known: "documented",
	Names: []string{"Visual Studio Code*", "Visual-Studio-Code*"},
	Profile: Profile{Name: "vscode", Runes: 20_000, Images: AllImages, Loads: agentsMD + " " + copilotMD,
		Background: patient},
	Programs: []string{"code"},
	Schemes:  []string{"vscode", "code-oss", "vscodium"},
	Protects: []string{".vscode/**"},
	Files:    codeUser("Code", "mcp.json", ".vscode/mcp.json"),
	Texts: Texts{Local: vscodeLocal, Remote: vscodeRemote, Note: "or run: MCP: Add Server",
		Link: vscodeLink("vscode")},
	Start:     Start{NoPATH: true, Roots: RootVariable},
	Expansion: replacing(braced, editorValue),
}

// codeUser returns the places of a file below the user's directory of VS Code.
func codeUser(code, path, project string) Files {
	return Files{"~/.config/" + code + "/User/" + path, "~/Library/Application Support/" + code + "/User/" + path,
		`%APPDATA%\` + code + `\User\` + strings.ReplaceAll(path, "/", `\`), project}
}

// vscodeLocal is told the type of each server.
func vscodeLocal(l Launch) string {
	return servers("servers", func(l Launch) entry {
		e := start(l)
		e.Type = "stdio"
		return e
	})(l)
}

// vscodeRemote asks for the token at the first use and keeps it itself.
func vscodeRemote(e Endpoint) string {
	type input struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		Description string `json:"description"`
		Password    bool   `json:"password"`
	}
	var file struct {
		Servers map[string]entry `json:"servers"`
		Inputs  []input          `json:"inputs,omitzero"`
	}
	ours := entry{Type: "http", URL: e.URL}
	if e.TokenEnv != "" {
		ours.Headers = map[string]string{"Authorization": "Bearer ${input:codehand}"}
		file.Inputs = []input{{"promptString", "codehand", "codehand token", true}}
	}
	file.Servers = map[string]entry{"codehand": ours}
	return text(file)
}

// vscodeLink returns the link of a build of VS Code with this scheme. The entry in it has its name inside.
func vscodeLink(scheme string) func(name string, entry map[string]any) string {
	return func(name string, entry map[string]any) string {
		named := maps.Clone(entry)
		named["name"] = name
		return scheme + ":mcp/install?" + strings.ReplaceAll(url.QueryEscape(line(named)), "+", "%20")
	}
}
