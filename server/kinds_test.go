package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// A clientKind is what matters of a client to how it gets at a tool that is not listed.
type clientKind struct {
	name   string // of the test
	info   string // clientInfo.name
	modern bool
	all    bool // everything is listed for it
	obeys  bool // it lists again when it is told to
}

var clientKinds = []clientKind{
	{name: "legacy that obeys", info: "gemini-cli-mcp-client", obeys: true},
	{name: "legacy that ignores", info: "continue-cli-client"},
	{name: "codex", info: "codex-mcp-client"},
	{name: "modern", info: "copilot-cli", modern: true},
	{name: "claude-code", info: "claude-code", modern: true, all: true},
	{name: "claude-code, legacy", info: "claude-code", all: true},
}

// A kindWire is one conversation: what one request brings, in the order in which it came.
type kindWire interface {
	ask(t *testing.T, method string, params map[string]any) (notes []string, result json.RawMessage)
}

// ask is the request of a client on standard input and output.
func (w *wire) ask(t *testing.T, method string, params map[string]any) (notes []string, result json.RawMessage) {
	t.Helper()
	w.heard = nil
	r, err := w.request(method, params)
	if err != nil || r.Error != nil {
		t.Fatalf("%s: %v %+v", method, err, r.Error)
	}
	return w.heard, r.Result
}

// ask is the request of a client of Streamable HTTP.
func (c *httpClient) ask(t *testing.T, method string, params map[string]any) (notes []string, result json.RawMessage) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": c.params(params)})
	must(t, err)
	got := c.do(c.request(t.Context(), http.MethodPost, c.url, string(body)))
	var r reply
	if err := json.Unmarshal([]byte(got.answer), &r); err != nil || r.Error != nil || got.status != http.StatusOK {
		t.Fatalf("%s: %d %s", method, got.status, got.answer)
	}
	for _, n := range got.notes {
		notes = append(notes, methodOf(n))
	}
	return notes, r.Result
}

// params are those of a request, with what the era wants in them.
func (c *httpClient) params(params map[string]any) map[string]any {
	if params == nil {
		params = map[string]any{}
	}
	if c.modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": c.info, "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	return params
}

// converses begins a conversation of a kind of clients with the built program.
func converses(t *testing.T, k clientKind, transport string) kindWire {
	t.Helper()
	switch transport {
	case "stdio":
		path := replaytest.Program(t)
		return spawn(t, path, realDir(t), k.info, k.modern, nil).wire
	case "bridge":
		d := deploy(t)
		cmd := d.codehand("connect", d.serve().url+"/mcp", "--token-env", "TEAM_TOKEN")
		cmd.Env = append(cmd.Env, "TEAM_TOKEN="+d.token)
		return speak(t, cmd, k.info, k.modern).wire
	}
	d := deploy(t)
	c := &httpClient{t: t, url: d.serve().url + "/mcp", token: d.token, modern: k.modern, info: k.info}
	if !k.modern {
		c.hello()
	}
	return c
}

// A shownTool is an entry of tools/list.
type shownTool struct {
	Name string         `json:"name"`
	Meta map[string]any `json:"_meta"`
}

// toldTools is the answer to tools/list.
func toldTools(t *testing.T, w kindWire) (result json.RawMessage, all []shownTool, entries []json.RawMessage) {
	t.Helper()
	_, result = w.ask(t, "tools/list", nil)
	var list struct{ Tools []json.RawMessage }
	must(t, json.Unmarshal(result, &list))
	for _, e := range list.Tools {
		var s shownTool
		must(t, json.Unmarshal(e, &s))
		all = append(all, s)
	}
	return result, all, list.Tools
}

func namesOf(all []shownTool) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// uses calls a tool, which must work, and returns the text of its result and what came before it.
func uses(t *testing.T, w kindWire, name string, args map[string]any) (text string, notes []string) {
	t.Helper()
	notes, result := w.ask(t, "tools/call", map[string]any{"name": name, "arguments": args})
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

// found are the names that an answer of tool_search shows, each with the schema of an object.
func found(t *testing.T, text string) (names []string) {
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

// TestClientKinds: clients of every kind find a tool that is deferred by words, and use it at the first try: by its name,
// an alias and call_tool. Who obeys a notice finds it in its list; the list of the modern era never changes; who defers by
// itself is shown everything. What nobody searched for runs as well.
func TestClientKinds(t *testing.T) {
	t.Parallel()
	for _, k := range clientKinds {
		for _, transport := range []string{"stdio", "http", "bridge"} {
			t.Run(strings.ReplaceAll(k.name+"/"+transport, " ", "_"), func(t *testing.T) {
				t.Parallel()
				findsAndUses(t, k, converses(t, k, transport))
			})
		}
	}
}

const changedList = "notifications/tools/list_changed"

func findsAndUses(t *testing.T, k clientKind, w kindWire) {
	const wanted = "todo_write"
	first, all, _ := toldTools(t, w)
	checkFirst(t, k, all, wanted)

	text, notes := uses(t, w, "tool_search", map[string]any{"query": "keep a todo list"})
	if names := found(t, text); len(names) == 0 || names[0] != wanted {
		t.Fatalf("found %q: %s", names, text)
	}
	told := slices.Contains(notes, changedList)
	if want := !k.modern && !k.all; told != want || told && len(notes) != 1 {
		t.Errorf("the client was told %q", notes)
	}
	again, notes := uses(t, w, "tool_search", map[string]any{"query": "keep a todo list"})
	if again != text || len(notes) > 0 {
		t.Errorf("the second search tells %q: %s", notes, again)
	}
	if named, _ := uses(t, w, "tool_search", map[string]any{"query": "select:TodoWrite,read_file"}); !slices.Equal(found(t, named), []string{wanted, "read_file"}) {
		t.Errorf("select: %s", named)
	}

	switch {
	case told && k.obeys:
		checkSecond(t, k, w, all, wanted)
	case !told:
		if second, _, _ := toldTools(t, w); !bytes.Equal(second, first) {
			t.Errorf("two lists:\n%s\n%s", first, second)
		}
	}

	todos := map[string]any{"todos": []any{map[string]any{"content": "Find tools", "status": "in_progress", "activeForm": "Finding tools"}}}
	ways := []string{wanted, "call_tool", "TodoWrite"}
	if !k.obeys && !k.all { // it believes that there is no such tool
		ways = []string{"call_tool", wanted, "TodoWrite"}
	}
	for _, name := range ways {
		args := todos
		if name == "call_tool" {
			args = map[string]any{"name": wanted, "arguments": todos}
		}
		uses(t, w, name, args)
	}
	uses(t, w, "enter_plan_mode", map[string]any{}) // nobody has searched for it
	if !told {
		if last, _, _ := toldTools(t, w); !bytes.Equal(last, first) {
			t.Errorf("the list changed with the calls:\n%s\n%s", first, last)
		}
	}
}

// checkFirst looks at a list before anything was found.
func checkFirst(t *testing.T, k clientKind, all []shownTool, wanted string) {
	t.Helper()
	names := namesOf(all)
	for _, name := range []string{"read_file", "tool_search", "call_tool"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	if slices.Contains(names, wanted) != k.all {
		t.Errorf("listed: %q", names)
	}
	deferred := false
	for i, s := range all {
		late := s.Meta["codehand/deferred"] == true
		if deferred && !late || late && !k.all {
			t.Errorf("%s stands at %d", s.Name, i)
		}
		if i > 0 && late == deferred && all[i-1].Name >= s.Name {
			t.Errorf("%s stands before %s", all[i-1].Name, s.Name)
		}
		deferred = late
		hint, _ := s.Meta["anthropic/searchHint"].(string)
		if always := s.Meta["anthropic/alwaysLoad"] == true; always != (!late && s.Name != "tool_search") || (hint != "") != late {
			t.Errorf("%s: %v", s.Name, s.Meta)
		}
		if s.Name == "ask_user_question" {
			t.Error("ask_user_question is listed for a client that cannot be asked")
		}
	}
}

// checkSecond looks at a list after something was found: it has that more, and nothing else.
func checkSecond(t *testing.T, k clientKind, w kindWire, before []shownTool, wanted string) {
	t.Helper()
	_, all, entries := toldTools(t, w)
	names := namesOf(all)
	if !slices.Contains(names, wanted) || !slices.Equal(names[:len(before)], namesOf(before)) {
		t.Errorf("listed: %q", names)
	}
	if _, _, once := toldTools(t, w); fmt.Sprintf("%s", once) != fmt.Sprintf("%s", entries) {
		t.Error("two lists of the same tools differ")
	}
}
