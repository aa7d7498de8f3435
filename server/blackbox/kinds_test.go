package blackbox

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// converses begins a conversation of a kind of clients with the built program.
func converses(t *testing.T, k replaytest.ClientKind, transport string) replaytest.KindWire {
	t.Helper()
	switch transport {
	case "stdio":
		path := replaytest.Program(t)
		return replaytest.Spawn(t, path, leaktest.Dir(t), k.Info, k.Modern, nil).Wire
	case "bridge":
		d := deploy(t)
		cmd := d.codehand("connect", d.serve().url+"/mcp", "--token-env", "TEAM_TOKEN")
		cmd.Env = append(cmd.Env, "TEAM_TOKEN="+d.token)
		return replaytest.Speak(t, cmd, k.Info, k.Modern).Wire
	}
	d := deploy(t)
	c := &replaytest.HTTPClient{T: t, URL: d.serve().url + "/mcp", Token: d.token, Modern: k.Modern, Info: k.Info}
	if !k.Modern {
		c.Hello()
	}
	return c
}

// TestClientKinds: clients of every kind find a tool that is deferred by words, and use it at the first try: by its name,
// an alias and call_tool. A client that obeys notices finds it in its list; the list of the modern era never changes; a
// client that defers by itself gets every tool. A tool that was not searched for runs as well.
func TestClientKinds(t *testing.T) {
	t.Parallel()
	for _, k := range replaytest.ClientKinds {
		for _, transport := range []string{"stdio", "http", "bridge"} {
			t.Run(strings.ReplaceAll(k.Name+"/"+transport, " ", "_"), func(t *testing.T) {
				t.Parallel()
				findsAndUses(t, k, converses(t, k, transport))
			})
		}
	}
}

func findsAndUses(t *testing.T, k replaytest.ClientKind, w replaytest.KindWire) {
	const wanted = "todo_write"
	first, all, _ := replaytest.ToldTools(t, w)
	checkFirst(t, k, all, wanted)

	text, notes := replaytest.Uses(t, w, "tool_search", map[string]any{"query": "keep a todo list"})
	if names := replaytest.FoundTools(t, text); len(names) == 0 || names[0] != wanted {
		t.Fatalf("found %q: %s", names, text)
	}
	told := slices.Contains(notes, replaytest.ChangedList)
	if want := !k.Modern && !k.All; told != want || told && len(notes) != 1 {
		t.Errorf("the client was told %q", notes)
	}
	again, notes := replaytest.Uses(t, w, "tool_search", map[string]any{"query": "keep a todo list"})
	if again != text || len(notes) > 0 {
		t.Errorf("the second search tells %q: %s", notes, again)
	}
	if named, _ := replaytest.Uses(t, w, "tool_search", map[string]any{"query": "select:TodoWrite,read_file"}); !slices.Equal(replaytest.FoundTools(t, named), []string{wanted, "read_file"}) {
		t.Errorf("select: %s", named)
	}

	switch {
	case told && k.Obeys:
		checkSecond(t, k, w, all, wanted)
	case !told:
		if second, _, _ := replaytest.ToldTools(t, w); !bytes.Equal(second, first) {
			t.Errorf("two lists:\n%s\n%s", first, second)
		}
	}

	todos := map[string]any{"todos": []any{map[string]any{"content": "Find tools", "status": "in_progress", "activeForm": "Finding tools"}}}
	ways := []string{wanted, "call_tool", "TodoWrite"}
	if !k.Obeys && !k.All { // it believes that there is no such tool
		ways = []string{"call_tool", wanted, "TodoWrite"}
	}
	for _, name := range ways {
		args := todos
		if name == "call_tool" {
			args = map[string]any{"name": wanted, "arguments": todos}
		}
		replaytest.Uses(t, w, name, args)
	}
	replaytest.Uses(t, w, "enter_plan_mode", map[string]any{}) // the client has not searched for it
	if !told {
		if last, _, _ := replaytest.ToldTools(t, w); !bytes.Equal(last, first) {
			t.Errorf("the list changed with the calls:\n%s\n%s", first, last)
		}
	}
}

// checkFirst looks at a list before anything was found.
func checkFirst(t *testing.T, k replaytest.ClientKind, all []replaytest.ShownTool, wanted string) {
	t.Helper()
	names := replaytest.NamesOf(all)
	for _, name := range []string{"read_file", "tool_search", "call_tool"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not listed", name)
		}
	}
	if slices.Contains(names, wanted) != k.All {
		t.Errorf("listed: %q", names)
	}
	deferred := false
	for i, s := range all {
		late := s.Meta["codehand/deferred"] == true
		if deferred && !late || late && !k.All {
			t.Errorf("%s stands at %d", s.Name, i)
		}
		if i > 0 && late == deferred && all[i-1].Name >= s.Name {
			t.Errorf("%s stands before %s", all[i-1].Name, s.Name)
		}
		deferred = late
		hint, _ := s.Meta["anthropic/searchHint"].(string)
		marked := strings.HasPrefix(k.Name, "claude-code") // nobody else reads them
		if always := s.Meta["anthropic/alwaysLoad"] == true; always != (marked && !late && s.Name != "tool_search") || (hint != "") != (marked && late) {
			t.Errorf("%s: %v", s.Name, s.Meta)
		}
		if s.Name == "ask_user_question" {
			t.Error("ask_user_question is listed for a client that cannot be asked")
		}
	}
}

// checkSecond looks at a list after something was found: it has that more, and nothing else.
func checkSecond(t *testing.T, k replaytest.ClientKind, w replaytest.KindWire, before []replaytest.ShownTool, wanted string) {
	t.Helper()
	_, all, entries := replaytest.ToldTools(t, w)
	names := replaytest.NamesOf(all)
	if !slices.Contains(names, wanted) || !slices.Equal(names[:len(before)], replaytest.NamesOf(before)) {
		t.Errorf("listed: %q", names)
	}
	if _, _, once := replaytest.ToldTools(t, w); fmt.Sprintf("%s", once) != fmt.Sprintf("%s", entries) {
		t.Error("two lists of the same tools differ")
	}
}
