package clients

var vscodeInsiders = Client{
	ID: "vscode-insiders", Title: "VS Code Insiders", Known: "documented",
	Profile:  vscode.Profile, // it gives itself a name that begins as that of VS Code
	Programs: []string{"code-insiders"},
	Schemes:  []string{"vscode-insiders"},
	Files:    codeUser("Code - Insiders", "mcp.json", ".vscode/mcp.json"),
	Texts: Texts{Local: vscodeLocal, Remote: vscodeRemote, Note: "or run: MCP: Add Server",
		Link: vscodeLink("vscode-insiders")},
	Start:     Start{NoPATH: true, Roots: RootVariable},
	Expansion: replacing(braced, editorValue),
}
