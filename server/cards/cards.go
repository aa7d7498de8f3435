package cards

import (
	_ "embed" // card.html
	"encoding/json"
	"slices"
)

const (
	// URI is the address of the page.
	URI = "ui://codehand/card"
	// MIMEType is what the extension calls such a page.
	MIMEType = "text/html;profile=mcp-app"

	extension = "io.modelcontextprotocol/ui"
)

// HTML is the page. It is self-contained: nothing in it names another address.
//
//go:embed card.html
var HTML string

// Meta is the _meta of the page as a resource. It asks for no network, which the empty csp says.
func Meta() map[string]any {
	return map[string]any{"ui": map[string]any{"csp": map[string]any{}, "prefersBorder": true}}
}

// ToolMeta is the _meta of a tool in tools/list whose results the page draws.
func ToolMeta() map[string]any {
	return map[string]any{"ui": map[string]any{"resourceUri": URI}}
}

// Shows says whether a client that declared these extensions shows cards. One that names no types of pages is taken to
// show none.
func Shows(extensions map[string]any) bool {
	raw, err := json.Marshal(extensions[extension])
	if err != nil {
		return false
	}
	var said struct {
		MIMETypes []string `json:"mimeTypes"`
	}
	return json.Unmarshal(raw, &said) == nil && slices.Contains(said.MIMETypes, MIMEType)
}
