package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// asClient starts the built program in a directory with these files, as the server of a client with this name.
func asClient(t *testing.T, name string, modern bool, files map[string]string) *replaytest.Spawned {
	t.Helper()
	work := leaktest.Dir(t)
	replaytest.Lay(t, work, files)
	return replaytest.Spawn(t, replaytest.Program(t), work, name, modern, map[string]string{"permissions.mode": "acceptEdits"})
}

// calls makes a call with more _meta, and returns the whole result as it was sent.
func calls(t *testing.T, p *replaytest.Spawned, name, args string, meta map[string]any) (result json.RawMessage, text string) {
	t.Helper()
	params := map[string]any{"name": name, "arguments": json.RawMessage(args)}
	if meta != nil {
		params["_meta"] = meta
	}
	_, result = p.Ask(t, "tools/call", params)
	var r struct{ Content []struct{ Text string } }
	must(t, json.Unmarshal(result, &r))
	return result, r.Content[0].Text
}

// An unlisted client was cut at 19,500 characters: it gets files of 2,000 lines and results of 2,000 lines or 50,000
// characters.
func TestUnlistedClientsAreNotCutShort(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for i := range 2_000 {
		fmt.Fprintf(&lines, "line %d of it\n", i)
	}
	p := asClient(t, "somebody-else", false, map[string]string{
		"lines.txt": lines.String(), "wide.txt": strings.Repeat(strings.Repeat("x", 99)+"\n", 470),
	})
	if text := p.Must(t, "read_file", `{"file_path":"lines.txt"}`); !strings.HasPrefix(text, "line 0 ") || !strings.Contains(text, "\nline 1999 ") {
		t.Errorf("of 2,000 lines came %d: %.100q", strings.Count(text, "\n"), text)
	}
	if text := p.Must(t, "read_file", `{"file_path":"wide.txt"}`); strings.Contains(text, "PARTIAL") {
		t.Errorf("of 47,000 characters came %d: %.100q", len(text), text)
	}
	if text := p.Must(t, "run_readonly", `{"command":"seq 2000"}`); strings.Contains(text, "truncated") || strings.Count(text, "\n") < 1_999 {
		t.Errorf("a command: %.100q", text)
	}
	if text := p.Must(t, "run_readonly", `{"command":"seq 5000"}`); !strings.HasPrefix(text, "Output too large") || strings.Count(text, "\n") > 2_010 {
		t.Errorf("%d lines of a long command: %.100q", strings.Count(text, "\n"), text)
	}
}

// Cline hands its model JSON.stringify of the whole result, and cuts the middle out of what has more than 8,000
// characters then: a page of code lost its middle, and of four short lines 300 characters of 428 were _meta.
func TestClineGetsWhatItCanShow(t *testing.T) {
	t.Parallel()
	code := strings.Repeat("\tif x[\"a\\b\"] == '\\n' { // \"quoted\" 😀\n", 1_000)
	p := asClient(t, "@cline/core", false, map[string]string{"short.txt": "1\n2\n3\n4\n", "code.go": code, "tabs.txt": strings.Repeat("\t", 30_000)})
	for _, c := range []struct{ tool, args string }{
		{"read_file", `{"file_path":"short.txt"}`},
		{"read_file", `{"file_path":"code.go"}`},
		{"read_file", `{"file_path":"code.go","offset":900}`},
		{"read_file", `{"file_path":"tabs.txt"}`},
		{"read_file", `{"file_path":"absent"}`},
		{"run_readonly", `{"command":"cat code.go"}`},
		{"run_shell", `{"command":"cat code.go; exit 3"}`},
		{"grep_search", `{"pattern":"quoted","output_mode":"content","path":"code.go"}`},
		{"tool_search", `{"query":"select:todo_write,task_create,task_update,enter_plan_mode,notebook_edit,file_history,undo_change,exit_plan_mode"}`},
		{"call_tool", `{"name":"session_config"}`},
	} {
		result, text := calls(t, p, c.tool, c.args, nil)
		if bytes.Contains(result, []byte(`"_meta"`)) {
			t.Errorf("%s %s has _meta: %.200s", c.tool, c.args, result)
		}
		var compact bytes.Buffer
		must(t, json.Compact(&compact, result))
		if n := len(utf16.Encode([]rune(compact.String()))); n > 8_000 {
			t.Errorf("%s %s has %d characters", c.tool, c.args, n)
		}
		if long := strings.Contains(c.args, "code.go") && c.tool != "grep_search"; long && c.tool == "read_file" && utf8.RuneCountInString(text) < 3_000 {
			t.Errorf("%s %s shows %d characters only", c.tool, c.args, utf8.RuneCountInString(text))
		}
	}
	if text := p.Must(t, "read_file", `{"file_path":"code.go","offset":1,"limit":1000}`); !strings.HasPrefix(text, "PARTIAL view: lines 1-") {
		t.Errorf("a page: %.200q", text)
	}
}

// Codex says with each call which model it talks to: those that it knows are shown four times as much.
func TestCodexIsCutByItsModel(t *testing.T) {
	t.Parallel()
	p := asClient(t, "codex-mcp-client", false, nil)
	for _, c := range []struct {
		turn any
		most int
	}{
		{nil, 11_900},
		{map[string]any{"model": "my-own"}, 11_900},
		{map[string]any{"model": "gpt-5.4"}, 11_900},
		{map[string]any{"model": "gpt-5.5"}, 47_900},
		{`{"model":"gpt-5.5"}`, 47_900},
		{map[string]any{"model": "gpt-6-sol"}, 39_500}, // from JavaScript
		{"no JSON", 11_900},
		{[]int{1}, 11_900},
	} {
		meta := map[string]any{"x-codex-turn-metadata": c.turn}
		if c.turn == nil {
			meta = nil
		}
		_, text := calls(t, p, "grep_search", `{"pattern":"x"}`, meta) // another one between does not matter
		if text == "" {
			t.Error("no answer")
		}
		_, text = calls(t, p, "session_config", `{"key":"result_cap"}`, meta)
		if want := fmt.Sprintf("result_cap = %d ", c.most); !strings.HasPrefix(text, want) {
			t.Errorf("%v: %s", c.turn, text)
		}
		_, text = calls(t, p, "tool_search", `{"query":"select:todo_write,task_create,task_update,task_list,enter_plan_mode,notebook_edit,undo_change","max_results":20}`, meta)
		if len(text) > c.most || c.most > 12_000 && strings.Contains(text, "do not fit") {
			t.Errorf("%v: %d characters", c.turn, len(text))
		}
	}
}

// The last line of tool_search names the way that works in this client: some never read their list again, and their
// models called by name what their clients did not know.
func TestFoundToolsAreCalledAsTheClientCan(t *testing.T) {
	t.Parallel()
	const byName, through, either = "These tools can be called now, by name.",
		"These tools can be called now, through call_tool; by name only if they are in your list of tools.",
		"These tools can be called now, by name or through call_tool."
	for _, c := range []struct {
		client string
		modern bool
		want   string
		all    bool // is listed
	}{
		{"codex-mcp-client", false, through, true},
		{"copilot-cli", true, through, false},
		{"copilot-cli", false, through, false},
		{"@cline/core", false, through, false},
		{"continue-cli-client", false, through, false},
		{"claude-code", true, byName, true},
		{"gemini-cli-mcp-client", false, byName, false},
		{"opencode", false, byName, false},
		{"somebody-else", false, either, false},
	} {
		p := asClient(t, c.client, c.modern, nil)
		_, shown, _ := replaytest.ToldTools(t, p)
		if slices.Contains(replaytest.NamesOf(shown), "session_config") != c.all {
			t.Errorf("%s: %q", c.client, replaytest.NamesOf(shown))
		}
		_, text := calls(t, p, "tool_search", `{"query":"select:session_config"}`, nil)
		if !strings.HasSuffix(text, c.want) {
			t.Errorf("%s: %s", c.client, text)
		}
		for _, way := range [][2]string{{"session_config", `{"key":"cwd"}`}, {"call_tool", `{"name":"session_config","arguments":{"key":"cwd"}}`}} {
			if _, text := calls(t, p, way[0], way[1], nil); !strings.HasPrefix(text, "cwd = ") {
				t.Errorf("%s by %s: %s", c.client, way[0], text)
			}
		}
	}
}

// opencode over HTTP: the answer overtook the list, and its model called by name what its client did not know yet.
func TestFoundToolsOverHTTP(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	s := d.serve()
	for client, want := range map[string]string{
		"opencode":              "through call_tool; by name only if they are in your list of tools.",
		"gemini-cli-mcp-client": "by name.",
	} {
		c := &replaytest.HTTPClient{T: t, URL: s.url + "/mcp", Token: d.token, Info: client}
		got := c.Hello().Does("tool_search", `{"query":"select:session_config"}`)
		if !strings.HasSuffix(got, "These tools can be called now, "+want) {
			t.Errorf("%s: %s", client, got)
		}
	}
}

// Copilot CLI listens for changes of its list, and none ever came: a modern client that does is told of what it found,
// and its list has it. Without a subscription a modern list stays as it is.
func TestModernSubscriptionsSeeWhatWasFound(t *testing.T) {
	t.Parallel()
	p := asClient(t, "copilot-cli", true, nil)
	listed := func() bool {
		_, all, _ := replaytest.ToldTools(t, p)
		return slices.Contains(replaytest.NamesOf(all), "task_create")
	}
	if notes, _ := p.Ask(t, "tools/call", map[string]any{"name": "tool_search", "arguments": map[string]any{"query": "select:task_create"}}); slices.Contains(notes, replaytest.ChangedList) || listed() {
		t.Errorf("without a subscription: %q, listed: %t", notes, listed())
	}
	must(t, p.Send(`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"copilot-cli","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if l, err := p.Receive(); err != nil || !strings.Contains(string(l), "acknowledged") {
		t.Fatalf("%s, %v", l, err)
	}
	if listed() {
		t.Error("what was found without a subscription is listed with one")
	}
	for i, want := range []bool{true, false} {
		notes, _ := p.Ask(t, "tools/call", map[string]any{"name": "tool_search", "arguments": map[string]any{"query": "select:task_create"}})
		if slices.Contains(notes, replaytest.ChangedList) != want || !listed() {
			t.Errorf("search %d: %q, listed: %t", i+1, notes, listed())
		}
	}
}

// opencode's model called by name what its client did not know yet: the answer came before the list was read again. Now
// it waits for that, and for a client that does not obey no longer than a second.
func TestFoundToolsAreListedBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"opencode", "gemini-cli-mcp-client"} {
		p := asClient(t, client, false, nil)
		lines := func(n int) (all []string) {
			for range n {
				l, err := p.Receive()
				must(t, err)
				all = append(all, string(l))
			}
			return all
		}
		search := func(id, name string) {
			must(t, p.Send(replaytest.CallLine(`"`+id+`"`, "tool_search", `{"query":"select:`+name+`"}`, "")))
		}
		search("search", "task_create")
		if first := lines(1)[0]; !strings.Contains(first, replaytest.ChangedList) {
			t.Fatalf("%s: first came %s", client, first)
		}
		must(t, p.Send(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`))
		if got := lines(2); !strings.Contains(got[0], `"id":"list"`) || !strings.Contains(got[0], "task_create") || !strings.Contains(got[1], `"id":"search"`) {
			t.Errorf("%s: first came %.100s, then %.100s", client, got[0], got[1])
		}
		search("again", "task_create") // nothing is new
		search("deaf", "task_get")
		if got := strings.Join(lines(3), ""); !strings.Contains(got, `"id":"again"`) || !strings.Contains(got, `"id":"deaf"`) {
			t.Errorf("%s does not list again: %s", client, got)
		}
	}
}

// A model learned its directories, its mode and whether commands are confined by being refused.
func TestInstructionsSayWhere(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		p := asClient(t, "somebody-else", modern, map[string]string{"sub/a.txt": "a\n"})
		method, params := "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "x", "version": "1"}}
		if modern {
			method, params = "server/discover", nil
		}
		_, result := p.Ask(t, method, params)
		var hello struct{ Instructions string }
		must(t, json.Unmarshal(result, &hello))
		work := p.Cmd.Dir
		want := "Your directories: " + work + ". A session starts in " + work + ", mode acceptEdits."
		if !strings.Contains(hello.Instructions, want) {
			t.Errorf("modern %t: %s", modern, hello.Instructions)
		}
		p.Must(t, "run_shell", `{"command":"cd sub"}`)
		p.Must(t, "call_tool", `{"name":"enter_plan_mode"}`)
		want = "Your directories: " + work + ". This session is in " + filepath.Join(work, "sub") + ", mode plan."
		if text := p.Must(t, "session_config", `{}`); !strings.HasPrefix(text, want) {
			t.Errorf("modern %t: %s", modern, text)
		}
	}
}

// A command that does what a tool does better brings one line that names the tool, once a session.
func TestOneTipASession(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"cat a.txt":                              "read_file",
		"cd . && cat -n a.txt":                   "read_file",
		"find . -name '*.txt'":                   "list_files",
		"grep -rn one . | head -5":               "grep_search",
		"grep one a.txt":                         "grep_search",
		"sed -i s/one/two/ a.txt":                "edit_file",
		"sed -E -i.bak 's/one/two/' a.txt":       "edit_file",
		"cat a.txt | tr a-z A-Z":                 "",
		"cat > b.txt <<E\nx\nE":                  "",
		"echo one | grep one":                    "",
		"find . -name '*.txt' -mtime -1":         "",
		"find . -type f -exec true {} ';'":       "",
		"sed -n 1,2p a.txt":                      "",
		"cat /etc/passwd":                        "",
		"grep -r root /etc/passwd":               "",
		"find .. -name '*.txt'":                  "",
		"find ~ -name '*.txt'":                   "",
		"sed -i '/two/d' a.txt":                  "edit_file",
		"echo cat a.txt":                         "",
		"printf 'x\\n' | sed s/x/y/; go version": "",
	} {
		p := asClient(t, "somebody-else", false, map[string]string{"a.txt": "one\n"})
		said := func(text string) string {
			_, rest, _ := strings.Cut(text, "[next time use ")
			name, _, _ := strings.Cut(rest, ":")
			return name
		}
		if got := said(p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command))); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
		if want == "" {
			continue
		}
		for _, again := range []string{"cat a.txt", "grep -r one .", "find ."} {
			if got := said(p.Must(t, "run_shell", replaytest.AsJSON(t, "command", again))); got != "" {
				t.Errorf("%q after %q: told again", again, command)
			}
		}
	}
	p := asClient(t, "somebody-else", false, map[string]string{"a.txt": "one\n"})
	if text := p.Must(t, "run_shell", `{"command":"cat a.txt"}`); !strings.HasPrefix(text, "one\n[next time use read_file: ") {
		t.Errorf("%q", text)
	}
	must(t, os.WriteFile(filepath.Join(p.Cmd.Dir, "a.txt"), []byte("one\n"), 0o600))
	if text := p.Must(t, "edit_file", `{"file_path":"a.txt","old_string":"one","new_string":"two"}`); strings.HasPrefix(text, "! ") {
		t.Errorf("what cat showed does not count as read: %s", text)
	}
}
