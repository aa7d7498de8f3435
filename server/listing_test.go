package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/tools"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// selects is the input of tool_search that finds these tools.
func selects(names ...string) map[string]any {
	return map[string]any{"query": "select:" + strings.Join(names, ",")}
}

// TestDeferral is the table of tools.deferral: what is listed before and after a tool was found.
func TestDeferral(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode, client  string
		modern        bool
		before, after string // core, more, all
	}{
		{"auto", "opencode", false, "core", "more"},
		{"auto", "opencode", true, "core", "core"},
		{"auto", "codex-mcp-client", false, "all", "all"},
		{"auto", "codex-mcp-client", true, "all", "all"},
		{"auto", "claude-code", false, "all", "all"},
		{"auto", "claude-code", true, "all", "all"},
		{"on", "codex-mcp-client", false, "core", "more"},
		{"on", "codex-mcp-client", true, "core", "core"},
		{"on", "claude-code", false, "core", "more"},
		{"on", "claude-code", true, "core", "core"},
		{"off", "codex-mcp-client", false, "all", "all"},
		{"off", "codex-mcp-client", true, "all", "all"},
		{"off", "claude-code", false, "all", "all"},
		{"off", "claude-code", true, "all", "all"},
	} {
		t.Run(fmt.Sprintf("%s/%s/%t", c.mode, c.client, c.modern), func(t *testing.T) {
			t.Parallel()
			f := start(t, setup{client: c.client, modern: c.modern, settings: map[string]string{"tools.deferral": c.mode}})
			var want = map[string][]string{}
			for _, x := range f.server.local.Offers(false).Catalog {
				if !x.Deferred {
					want["core"] = append(want["core"], x.Name)
				}
			}
			if c.client == "codex-mcp-client" {
				want["core"] = append(want["core"], "apply_patch") // its models are trained for that
			}
			want["more"] = append(slices.Clone(want["core"]), "exit_plan_mode")
			for _, e := range f.server.local.Offers(false).Tools {
				want["all"] = append(want["all"], e.Name)
			}
			_, listed, _ := replaytest.ToldTools(t, f.Wire)
			if got := replaytest.NamesOf(listed); !slices.Equal(got, want[c.before]) {
				t.Errorf("before: %q, want %q", got, want[c.before])
			}
			replaytest.Uses(t, f.Wire, "tool_search", selects("ExitPlanMode", "read_file"))
			_, listed, _ = replaytest.ToldTools(t, f.Wire)
			if got := replaytest.NamesOf(listed); !slices.Equal(got, want[c.after]) {
				t.Errorf("after: %q, want %q", got, want[c.after])
			}
		})
	}
}

// TestAlways: a tool of tools.always is listed as the core is, by whatever name it is named there; a name that is none is
// an error at the start.
func TestAlways(t *testing.T) {
	t.Parallel()
	f := start(t, setup{client: "claude-code", modern: true, settings: map[string]string{"tools.always": "TodoWrite,mcp__later__tool", "tools.deferral": "on"}})
	_, all, _ := replaytest.ToldTools(t, f.Wire)
	at := slices.IndexFunc(all, func(s replaytest.ShownTool) bool { return s.Name == "todo_write" })
	if at < 0 || all[at].Meta["anthropic/alwaysLoad"] != true || all[at].Meta["codehand/deferred"] != nil || all[at].Meta["anthropic/searchHint"] != nil {
		t.Fatalf("todo_write is at %d of %+v", at, all)
	}
	if !slices.IsSorted(replaytest.NamesOf(all)) {
		t.Errorf("not in order: %q", replaytest.NamesOf(all))
	}
	for _, e := range f.server.List() {
		if want := e.Tool.Spec.Deferred && e.Tool.Spec.Name != "todo_write"; e.Deferred != want {
			t.Errorf("%s: deferred %t", e.Tool.Spec.Name, e.Deferred)
		}
	}
	if text, _ := replaytest.Uses(t, f.Wire, "tool_search", map[string]any{"query": "todo list of steps"}); slices.Contains(replaytest.FoundTools(t, text), "todo_write") {
		t.Error("a listed tool is found by words")
	}
	if text := f.Must(t, "todo_write", `{"x":1}`); !strings.HasPrefix(text, "! INPUT_INVALID") || strings.Contains(text, "not loaded") {
		t.Error(text)
	}
	_, err := New(Options{Options: engines.Options{Config: testSettings(t, leaktest.Dir(t), filepath.Join(t.TempDir(), "state"), map[string]string{"tools.always": "read_file,no_such_tool"}), Tools: tools.All}})
	if err == nil || err.Error() != "tools.always: there is no tool no_such_tool" {
		t.Errorf("a name that is none: %v", err)
	}
}

// TestListTokens holds what the lists cost as they are sent, on stdio and by serve: bytes / 4.
func TestListTokens(t *testing.T) {
	t.Parallel()
	const mostCore, mostOfAll = 2_700, 9_000
	cost := func(w replaytest.KindWire) int {
		result, _, _ := replaytest.ToldTools(t, w)
		var list struct{ Tools json.RawMessage }
		must(t, json.Unmarshal(result, &list))
		return len(list.Tools) / 4
	}
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	for what, c := range map[string]*replaytest.HTTPClient{"legacy": x.client("alice").Hello(), "modern": x.client("alice").Of2026()} {
		if core := cost(c); core > mostCore {
			t.Errorf("serve, %s: core %d tokens, at most %d: shorten the .md of a tool", what, core, mostCore)
		}
	}
	for _, modern := range []bool{false, true} {
		core := cost(start(t, setup{modern: modern}).Wire)
		f := start(t, setup{modern: modern, settings: map[string]string{"tools.deferral": "off"}, silent: true})
		f.Caps = map[string]any{"elicitation": map[string]any{}}
		must(t, f.Hello())
		all := cost(f.Wire)
		t.Logf("modern %t: core %d tokens, everything %d", modern, core, all)
		if core > mostCore || all > mostOfAll {
			t.Errorf("modern %t: core %d tokens, at most %d; everything %d, at most %d: shorten the .md of a tool", modern, core, mostCore, all, mostOfAll)
		}
	}
}

// TestQuestionsAreOffered: what needs a person is listed, found and callable only where one can be asked.
func TestQuestionsAreOffered(t *testing.T) {
	t.Parallel()
	const name = "ask_user_question"
	for _, modern := range []bool{false, true} {
		for _, asks := range []bool{false, true} {
			f := start(t, setup{modern: modern, silent: true, settings: map[string]string{"tools.deferral": "off"}})
			if asks {
				f.Caps = map[string]any{"elicitation": map[string]any{}}
			}
			must(t, f.Hello())
			_, all, _ := replaytest.ToldTools(t, f.Wire)
			at := slices.IndexFunc(all, func(s replaytest.ShownTool) bool { return s.Name == "exit_plan_mode" })
			if marked := all[at].Meta["anthropic/requiresUserInteraction"] == true; marked == asks {
				t.Errorf("modern %t, asks %t: exit_plan_mode %v", modern, asks, all[at].Meta)
			}
			if listed := slices.Contains(replaytest.NamesOf(all), name); listed != asks {
				t.Errorf("modern %t, asks %t: listed %t", modern, asks, listed)
			}
			text, _ := replaytest.Uses(t, f.Wire, "tool_search", selects(name))
			if asks != (len(replaytest.FoundTools(t, text)) == 1) {
				t.Errorf("modern %t, asks %t: %s", modern, asks, text)
			}
			if text := f.Must(t, "call_tool", `{"name":"AskUserQuestion"}`); !asks && !strings.HasPrefix(text, "! TOOL_DISABLED") || asks && !strings.HasPrefix(text, "! INPUT_INVALID") {
				t.Errorf("modern %t, asks %t: %s", modern, asks, text)
			}
		}
	}
}

// TestActiveSets: two legacy sessions of one principal have lists of their own, over HTTP and through a handle, and a
// server that comes after knows them.
func TestActiveSets(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	one, other := x.client("alice").Hello(), x.client("alice").Hello()
	one.Does("tool_search", `{"query":"select:todo_write"}`)
	other.Does("tool_search", `{"query":"select:task_get,task_list"}`)
	sets := func() []bool {
		var has []bool
		for _, c := range []*replaytest.HTTPClient{one, other} {
			listed := c.Listed()
			for _, name := range []string{"todo_write", "task_get", "task_list", "task_create"} {
				has = append(has, slices.Contains(listed, name))
			}
		}
		return has
	}
	want := []bool{true, false, false, false, false, true, true, false}
	if got := sets(); !slices.Equal(got, want) {
		t.Errorf("the sets are %v, want %v", got, want)
	}
	must(t, x.stop())
	y := serveHTTP(t, siteSetup{principals: []string{"alice"}, data: x.data, work: x.work, tokens: x.tokens})
	one.URL, other.URL = y.url+"/mcp", y.url+"/mcp"
	if got := sets(); !slices.Equal(got, want) {
		t.Errorf("after a restart the sets are %v, want %v", got, want)
	}
}

// TestThreadsAreListed: a client that names its thread, or a handle, in calls alone never saw in its list what tool_search
// had found, although it was told that the list changed.
func TestThreadsAreListed(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	for _, meta := range []map[string]any{{"threadId": "thread-one"}, {"codehand/session": "handle-one"}} {
		for _, wire := range []replaytest.KindWire{start(t, setup{change: func(c *config.Config) { c.StdioHandle = "" }}).Wire, x.client("alice").Hello(), x.client("alice").Hello()} {
			notes, _ := wire.Ask(t, "tools/call", map[string]any{"name": "tool_search", "arguments": selects("todo_write"), "_meta": meta})
			if !slices.Contains(notes, replaytest.ChangedList) {
				t.Errorf("%v on %T: the client was not told", meta, wire)
			}
			if _, listed, _ := replaytest.ToldTools(t, wire); !slices.Contains(replaytest.NamesOf(listed), "todo_write") {
				t.Errorf("%v on %T: todo_write was found and is not listed", meta, wire)
			}
			notes, _ = wire.Ask(t, "tools/call", map[string]any{"name": "tool_search", "arguments": selects("todo_write"), "_meta": meta})
			if slices.Contains(notes, replaytest.ChangedList) {
				t.Errorf("%v on %T: the client was told again", meta, wire)
			}
		}
	}
}

// TestDeniedIsHidden: a bare deny rule for a deferred tool hides it from lists, searches and near names, and holds by name
// and through call_tool; a tool that was found before the rule came leaves the list.
func TestDeniedIsHidden(t *testing.T) {
	t.Parallel()
	for _, deferral := range []string{"on", "off"} {
		f := start(t, setup{settings: map[string]string{"permissions.deny": "TodoWrite", "tools.deferral": deferral}})
		_, err := f.server.stored(t, f.Wire)
		must(t, err)
		_, all, _ := replaytest.ToldTools(t, f.Wire)
		if slices.Contains(replaytest.NamesOf(all), "todo_write") {
			t.Errorf("%s: it is listed", deferral)
		}
		for _, query := range []string{"todo list of steps", "select:todo_write", "select:TodoWrite", "todo_write"} {
			text, _ := replaytest.Uses(t, f.Wire, "tool_search", map[string]any{"query": query})
			if slices.Contains(replaytest.FoundTools(t, text), "todo_write") {
				t.Errorf("%s: %q finds it", deferral, query)
			}
		}
		for _, c := range [][2]string{{"todo_write", `{"todos":[]}`}, {"call_tool", `{"name":"todo_write","arguments":{"todos":[]}}`}, {"call_tool", `{"name":"TODOWRITE","arguments":{"todos":[]}}`}} {
			if text := f.Must(t, c[0], c[1]); !strings.HasPrefix(text, "! TOOL_DISABLED: todo_write is not available: rule TodoWrite") {
				t.Errorf("%s: %s %s: %s", deferral, c[0], c[1], text)
			}
		}
		if text := f.Must(t, "call_tool", `{"name":"todo_writ"}`); !strings.HasPrefix(text, "! UNKNOWN_TOOL") || strings.Contains(text, "todo_write") {
			t.Errorf("%s: %s", deferral, text)
		}
	}
}

// stored puts a denied tool among those that the session of a wire has found, as if the rule had come later.
func (s *Server) stored(t *testing.T, w *replaytest.Wire) ([]string, error) {
	t.Helper()
	key, err := s.names.Key(jsonrpc.Envelope{})
	must(t, err)
	st, release, err := s.sessions.Acquire(key, s.local)
	must(t, err)
	defer release()
	return st.Active.Change(t.Context(), func([]string) ([]string, error) { return []string{"exit_plan_mode", "todo_write"}, nil })
}

// listChanges is a tool that always says that the list changed.
func listChanges() tool.Tool {
	return fixtureTool("change", reader, func(context.Context, tool.Env, word) (tool.Result, error) {
		return tool.Result{Text: "changed", ListChanged: true}, nil
	})
}

// TestListChangedGoesTo: only the client of the session whose list changed is told, before the answer, on every transport;
// one whose list cannot change is not, and one that takes no stream is answered without.
func TestListChangedGoesTo(t *testing.T) {
	t.Parallel()
	for _, k := range replaytest.ClientKinds {
		f := start(t, setup{tools: []tool.Tool{listChanges()}, client: k.Info, modern: k.Modern})
		if _, notes := replaytest.Uses(t, f.Wire, "change", nil); slices.Contains(notes, replaytest.ChangedList) != (!k.Modern && !k.All) {
			t.Errorf("%s on stdio: %q", k.Name, notes)
		}
	}
	x := serveHTTP(t, siteSetup{tools: []tool.Tool{listChanges()}, principals: []string{"alice"}})
	for _, k := range replaytest.ClientKinds {
		c := x.client("alice")
		c.Info, c.Modern = k.Info, k.Modern
		if !k.Modern {
			c.Hello()
		}
		if _, notes := replaytest.Uses(t, c, "change", nil); slices.Contains(notes, replaytest.ChangedList) != (!k.Modern && !k.All) {
			t.Errorf("%s over HTTP: %q", k.Name, notes)
		}
	}
	c := x.client("alice").Hello()
	c.Extra = map[string]string{"Accept": "application/json"}
	if got := c.Call("1", "change", "{}", ""); got.Status != http.StatusOK || len(got.Notes) > 0 || !strings.Contains(got.Answer, "changed") {
		t.Errorf("without a stream: %+v", got)
	}

	s, bystander := x.tap(t, x.client("alice")), x.tap(t, x.client("alice"))
	for _, c := range []*sseClient{s, bystander} {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		c.next(t)
	}
	s.send(replaytest.CallLine(2, "change", "{}", ""))
	if first, second := s.next(t), s.next(t); !strings.Contains(first, replaytest.ChangedList) || !strings.Contains(second, `"id":2`) {
		t.Errorf("on SSE: %s, then %s", first, second)
	}
	bystander.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if next := bystander.next(t); !strings.Contains(next, `"id":3`) {
		t.Errorf("another stream was told: %s", next)
	}
}

// TestClientIsKnown: tools learn whether anything is deferred for the client, and which protocol it speaks.
func TestClientIsKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		client, mode string
		modern, all  bool
		revision     string
	}{
		{"copilot-cli", "auto", false, false, "2025-11-25"}, {"copilot-cli", "off", true, true, jsonrpc.FirstModern},
		{"codex-mcp-client", "auto", false, true, "2025-11-25"},
		{"claude-code", "auto", true, true, jsonrpc.FirstModern}, {"claude-code", "on", false, false, "2025-11-25"},
	} {
		var got session.Client
		look := fixtureTool("look", reader, func(_ context.Context, env tool.Env, _ word) (tool.Result, error) {
			got = env.Client
			return tool.Result{}, nil
		})
		f := start(t, setup{tools: []tool.Tool{look}, client: c.client, modern: c.modern, settings: map[string]string{"tools.deferral": c.mode}})
		f.Must(t, "look", "{}")
		if got.SeesAll != c.all || got.Revision != c.revision || got.Name != c.client {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestProfiles: tools.profile and that of a token both hold.
func TestProfiles(t *testing.T) {
	t.Parallel()
	readonly := auth.Values{Profile: new(string)}
	*readonly.Profile = "readonly"
	for _, c := range []struct {
		profile string
		token   auth.Values
		want    func(tool.Tool) bool
	}{
		{"default", auth.Values{}, func(tool.Tool) bool { return true }},
		{"simple", auth.Values{}, func(x tool.Tool) bool {
			return slices.Contains([]string{"run_shell", "read_file", "edit_file"}, x.Spec.Name)
		}},
		{"readonly", auth.Values{}, func(x tool.Tool) bool { return x.Spec.Traits.ReadOnly || x.Spec.Name == "call_tool" }},
		{"default", readonly, func(x tool.Tool) bool { return x.Spec.Traits.ReadOnly || x.Spec.Name == "call_tool" }},
		{"simple", readonly, func(x tool.Tool) bool { return x.Spec.Name == "read_file" }},
	} {
		x := serveHTTP(t, siteSetup{
			principals: []string{"alice"}, values: map[string]auth.Values{"alice": c.token},
			settings: map[string]string{"tools.profile": c.profile, "tools.deferral": "off", "sandbox.policy": "off", "lsp.enabled": "false",
				"web.search.kind": "searxng", "web.search.url": "http://127.0.0.1:1",
				"agent.api.provider": "openai", "agent.api.base_url": "http://127.0.0.1:1", "agent.api.model": "m"},
		})
		client := x.client("alice").Hello()
		var want []string
		for _, known := range x.server.engines.Tools.All() {
			if c.want(known) && !slices.Contains([]string{"ask_user_question", "lsp", "lsp_edit"}, known.Spec.Name) { // the client cannot ask
				want = append(want, known.Spec.Name)
			}
		}
		listed := client.Listed()
		slices.Sort(listed)
		slices.Sort(want)
		if !slices.Equal(listed, want) {
			t.Errorf("%s, token %v: %q, want %q", c.profile, c.token.Profile, listed, want)
		}
	}
}

// TestNearestCanBeCalled: a client that cannot be asked, and misspelt a name, was told to take ask_user_question, and then
// that it is not available.
func TestNearestCanBeCalled(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		for caps, asks := range map[string]bool{replaytest.Undeclared: false, replaytest.Declared: true} {
			c := replaytest.OnPipe(t, start(t, setup{silent: true}).Wire, modern, caps)
			if a := c.Call("call_tool", `{"name":"ask_user_questoin"}`, replaytest.Always(replaytest.Stop)); !strings.HasPrefix(a.Text, "UNKNOWN_TOOL") || strings.Contains(a.Text, "ask_user_question") != asks {
				t.Errorf("modern %v, asks %v: %+v", modern, asks, a)
			}
			if a := c.Call("ask_user_questoin", `{}`, replaytest.Always(replaytest.Stop)); a.Code != 0 || !strings.HasPrefix(a.Text, "UNKNOWN_TOOL: Unknown tool: ask_user_questoin.") || strings.Contains(a.Text, "ask_user_question") != (asks && !modern) {
				t.Errorf("modern %v, asks %v: %+v", modern, asks, a)
			}
		}
	}
}

// TestListsBeforeHello: a client that lists before it initializes, and one whose session is unknown, see the core.
func TestListsBeforeHello(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true})
	first, _, _ := replaytest.ToldTools(t, f.Wire)
	must(t, f.Hello())
	if second, _, _ := replaytest.ToldTools(t, f.Wire); !bytes.Equal(first, second) {
		t.Errorf("two lists:\n%s\n%s", first, second)
	}
	if r, err := f.Request("tools/list", map[string]any{"_meta": map[string]any{"codehand/session": "x"}}); err != nil || r.Error == nil {
		t.Errorf("a handle that is none: %+v, %v", r, err)
	}
}

// TestWebSearchIsListed: web_search is there only with an endpoint, which its description names.
func TestWebSearchIsListed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		settings map[string]string
		want     bool
	}{
		{map[string]string{"tools.deferral": "off"}, false},
		{map[string]string{"tools.deferral": "off", "web.search.kind": "searxng", "web.search.url": "http://127.0.0.1:1"}, true},
	} {
		f := start(t, setup{client: "copilot-cli", settings: c.settings})
		must(t, f.Hello())
		text := fmt.Sprint(f.server.local.Offers(true).Tools)
		found := ""
		for _, l := range f.server.local.Offers(true).Tools {
			if l.Name == "web_search" {
				b, err := l.JSON()
				must(t, err)
				found = string(b)
			}
		}
		if (found != "") != c.want || c.want && !strings.Contains(found, `\nSearches go to SearXNG (127.0.0.1).`) {
			t.Errorf("%v: %q in %s", c.settings, found, text)
		}
	}
}

// TestPatchersAreListed: clients whose models are trained to write patches are listed the tool for them from the start,
// also modern ones and where their client says that it defers by itself and the operator defers; others must find it.
func TestPatchersAreListed(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]bool{"openai-mcp": true, "codex-mcp-client": true, "cursor-vscode": false, "": false} {
		for _, modern := range []bool{false, true} {
			f := start(t, setup{client: client, modern: modern, settings: map[string]string{"tools.deferral": "on"}})
			_, all, _ := replaytest.ToldTools(t, f.Wire)
			names := replaytest.NamesOf(all)
			if slices.Contains(names, "apply_patch") != want || slices.Contains(names, "notebook_edit") {
				t.Errorf("%q, modern %t: %q", client, modern, names)
			}
			text := f.Must(t, "apply_patch", `{"patch":"*** Begin Patch\n*** Add File: a\n+a\n*** End Patch"}`)
			if !strings.HasPrefix(text, "Created a (1 line)") {
				t.Errorf("%q, modern %t: called: %s", client, modern, text)
			}
		}
	}
}
