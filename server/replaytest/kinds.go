package replaytest

import (
	"encoding/json"
	"regexp"
	"testing"
)

// A ClientKind is what matters of a client to how it gets at a tool that is not listed.
type ClientKind struct {
	Name   string // of the test
	Info   string // clientInfo.name
	Modern bool
	All    bool // everything is listed for it
	Obeys  bool // it lists again when it is told to
}

// ClientKinds are all kinds, each with the name of a client of its kind.
var ClientKinds = []ClientKind{
	{Name: "legacy that obeys", Info: "gemini-cli-mcp-client", Obeys: true},
	{Name: "legacy that ignores", Info: "continue-cli-client"},
	{Name: "codex", Info: "codex-mcp-client", All: true},
	{Name: "modern", Info: "copilot-cli", Modern: true},
	{Name: "claude-code", Info: "claude-code", Modern: true, All: true},
	{Name: "claude-code, legacy", Info: "claude-code", All: true},
}

// A KindWire is one conversation: what one request brings, in the order in which it came.
type KindWire interface {
	Ask(t *testing.T, method string, params map[string]any) (notes []string, result json.RawMessage)
}

// A ShownTool is an entry of tools/list.
type ShownTool struct {
	Name string         `json:"name"`
	Meta map[string]any `json:"_meta"`
}

// ToldTools is the answer to tools/list.
func ToldTools(t *testing.T, w KindWire) (result json.RawMessage, all []ShownTool, entries []json.RawMessage) {
	t.Helper()
	_, result = w.Ask(t, "tools/list", nil)
	var list struct{ Tools []json.RawMessage }
	must(t, json.Unmarshal(result, &list))
	for _, e := range list.Tools {
		var s ShownTool
		must(t, json.Unmarshal(e, &s))
		all = append(all, s)
	}
	return result, all, list.Tools
}

// NamesOf are the names of tools, in their order.
func NamesOf(all []ShownTool) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// Uses calls a tool, which must work, and returns the text of its result and what came before it.
func Uses(t *testing.T, w KindWire, name string, args map[string]any) (text string, notes []string) {
	t.Helper()
	notes, result := w.Ask(t, "tools/call", map[string]any{"name": name, "arguments": args})
	var r struct {
		IsError bool
		Content []struct{ Text string }
	}
	must(t, json.Unmarshal(result, &r))
	if r.IsError || len(r.Content) == 0 {
		t.Fatalf("%s: %s", name, result)
	}
	return r.Content[0].Text, notes
}

// functions finds what tool_search shows.
var functions = regexp.MustCompile(`(?m)^<function>(.*)</function>$`)

// FoundTools are the names that an answer of tool_search shows, each with the schema of an object.
func FoundTools(t *testing.T, text string) (names []string) {
	t.Helper()
	for _, m := range functions.FindAllStringSubmatch(text, -1) {
		var f struct {
			Description, Name string
			Parameters        struct{ Type string }
		}
		must(t, json.Unmarshal([]byte(m[1]), &f))
		if f.Description == "" || f.Parameters.Type != "object" {
			t.Errorf("half a tool: %s", m[1])
		}
		names = append(names, f.Name)
	}
	return names
}

// ChangedList is the method of the notice that the list of tools is another.
const ChangedList = "notifications/tools/list_changed"
