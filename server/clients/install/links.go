package install

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	"codehand/server/clients"
	"codehand/server/clients/install/forms"
)

// Link is an address that makes a client add codehand by itself, once a person has opened it and agreed; "": there is
// none. It starts the program by its bare name, since it cannot know the path, and holds no token.
func Link(client string) string {
	s, err := snippetOf(client, Want{}, nil)
	if err != nil || s.Roots != clients.RootVariable {
		return ""
	}
	tree, err := forms.JSON.Decode([]byte(s.Text))
	if err != nil {
		return ""
	}
	servers, _ := tree.(map[string]any)[forms.Container(tree)].(map[string]any)
	entry, _ := servers[forms.Name].(map[string]any)
	if client != "cursor" {
		entry["name"] = forms.Name
	}
	text, err := json.Marshal(entry)
	if err != nil {
		return ""
	}
	escaped := strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
	switch client {
	case "vscode":
		return "vscode:mcp/install?" + escaped
	case "vscode-insiders":
		return "vscode-insiders:mcp/install?" + escaped
	case "cursor":
		return "cursor://anysphere.cursor-deeplink/mcp/install?name=" + forms.Name + "&config=" +
			url.QueryEscape(base64.StdEncoding.EncodeToString(text))
	}
	return ""
}
