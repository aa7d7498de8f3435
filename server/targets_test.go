package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/auth/limits"
	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/jsonrpc"
	"codehand/server/replaytest"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/team"
	"codehand/tools"
	"codehand/tools/hooks"
	"codehand/tools/tool"
)

// dispatcher is call_tool.
func dispatcher(t *testing.T) tool.Tool {
	t.Helper()
	all := tools.All(tools.Engines{})
	at := slices.IndexFunc(all, tool.Tool.Dispatches)
	if at < 0 {
		t.Fatal("there is no dispatcher")
	}
	return all[at]
}

// through is the input of call_tool for a call.
func through(name, args string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args)
}

// TestThroughQueues: a call through call_tool stands in the queues of its target, and may finish without its client if
// that one may.
func TestThroughQueues(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{settings: map[string]string{"sandbox.policy": "off"}})
	s := x.server
	who := team.LocalPrincipal(s.cfg)
	who.ID, who.Quota = "busy", limits.Quota{ConcurrentCalls: 4, ConcurrentShells: 4}
	at, err := s.team.Tenants.Of(team.LocalPrincipal(s.cfg))
	must(t, err)
	for _, c := range []struct {
		name, args string
		tool       string
		places     int
		changes    bool
	}{
		{"call_tool", through("run_shell", `{"command":"true"}`), "run_shell", 2, true},
		{"call_tool", through("bash", `{"command":"true"}`), "run_shell", 2, true},
		{"call_tool", through("Read", `{"file_path":"a"}`), "read_file", 1, false},
		{"call_tool", through("write_file", `{"file_path":"a"}`), "write_file", 1, true},
		{"call_tool", through("no_such", `{}`), "call_tool", 1, true},
		{"call_tool", `{}`, "call_tool", 1, true},
		{"Bash", `{"command":"true"}`, "run_shell", 2, true},
		{"read_file", `{}`, "read_file", 1, false},
	} {
		env, bad := jsonrpc.Scan([]byte(replaytest.CallLine(1, c.name, c.args, "")))
		if bad != nil {
			t.Fatal(bad.Message)
		}
		key, _ := sessions.HTTPKey(who, env, "handle-one", "")
		r := request.Request{
			Envelope: env, Tenant: at, Session: key, Peer: noPeer{}, Caller: request.Caller{Limits: s.team.Porter.Limits(who)},
		}
		called, _ := s.engines.Tools.Get(c.name)
		to := s.engines.Tools.Follow(at, called, env.Arguments).Tool
		state, release, err := s.sessions.Acquire(key, at)
		must(t, err)
		held := s.calls.Places.Take(&request.Turn{State: state, Req: r}, to)
		held.Leave()
		release()
		work, changes := s.calls.Serve(r)
		ended, end := context.WithCancel(t.Context())
		end()
		a := work(ended)
		if len(held.Queues) != c.places || changes != c.changes || a.Tool != c.tool {
			t.Errorf("%s %s: %s, %d places, changes %t", c.name, c.args, a.Tool, len(held.Queues), changes)
		}
	}
}

// TestThroughSideBySide: readers run side by side through call_tool, too.
func TestThroughSideBySide(t *testing.T) {
	t.Parallel()
	var inside atomic.Int64
	both := make(chan struct{})
	meet := fixtureTool("meet", reader, func(ctx context.Context, _ tool.Env, _ word) (tool.Result, error) {
		if inside.Add(1) == 3 {
			close(both)
		}
		select {
		case <-both:
			return tool.Result{Text: "met"}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	})
	f := start(t, setup{tools: []tool.Tool{meet, dispatcher(t)}})
	must(t, f.Send(replaytest.CallLine(10, "call_tool", through("meet", `{}`), "")))
	must(t, f.Send(replaytest.CallLine(11, "meet", "{}", "")))
	must(t, f.Send(replaytest.CallLine(12, "call_tool", through("MEET", `{}`), "")))
	answers, _ := f.collect(t, 3)
	for id, r := range answers {
		if !strings.Contains(string(r.Result), `"met"`) {
			t.Errorf("%s: %s", id, r.Result)
		}
	}
}

// TestThroughAsks: a person is asked about the target, with its input; the answer counts for that target alone, whichever
// way the call comes back.
func TestThroughAsks(t *testing.T) {
	t.Parallel()
	made := func(runs *runCount) []tool.Tool {
		return []tool.Tool{changing("change", runs), changing("other", runs), dispatcher(t)}
	}
	eachWire(t, replaytest.Declared, made, func(t *testing.T, c *replaytest.ElicitClient, runs *runCount) {
		asked := ""
		say := func(question string) string { asked = question; return replaytest.SayOnce }
		if a := c.Call("call_tool", through("change", `{"text":"x"}`), say); a.Asked != 1 || a.Text != "did x" || !strings.Contains(asked, "change") || strings.Contains(asked, "call_tool") {
			t.Fatalf("asked %q: %+v", asked, a)
		}
		if a := c.Call("call_tool", through("change", `{"text":"x"}`), replaytest.Always(`{"action":"decline"}`)); !a.Failed || !strings.HasPrefix(a.Text, "USER_DECLINED") {
			t.Errorf("declined: %+v", a)
		}
		if runs.count() != 1 {
			t.Errorf("%d runs", runs.count())
		}
	})
}

// TestThroughStates: the state of a question names the target and its input; it is worth nothing for another tool.
func TestThroughStates(t *testing.T) {
	t.Parallel()
	runs := &runCount{}
	f := start(t, setup{tools: []tool.Tool{changing("change", runs), changing("other", runs), dispatcher(t)}, settings: askingSettings(), silent: true})
	c := replaytest.OnPipe(t, f.Wire, true, replaytest.Declared)
	pending := func() string {
		return c.Call("call_tool", through("change", `{"text":"x"}`), replaytest.Always(replaytest.Stop)).State
	}
	for _, again := range []struct {
		name, args string
		code       int
		text       string
	}{
		{"call_tool", through("other", `{"text":"x"}`), -32602, "requestState"},
		{"other", `{"text":"x"}`, -32602, "requestState"},
		{"change", `{"text":"x"}`, 0, "did x"},
		{"call_tool", through("CHANGE", `{"text":"x"}`), 0, "did x"},
	} {
		a := c.CallWith(again.name, again.args, replaytest.Answering(replaytest.SayOnce, pending()), replaytest.Always(replaytest.Stop))
		if a.Code != again.code || !strings.Contains(a.Text, again.text) {
			t.Errorf("%s %s: %+v", again.name, again.args, a)
		}
	}
	if a := c.CallWith("call_tool", through("change", `{"text":"y"}`), replaytest.Answering(replaytest.SayOnce, pending()), replaytest.Always(replaytest.Stop)); a.Asked != 1 {
		t.Errorf("another input is not asked about: %+v", a)
	}
	if runs.count() != 2 {
		t.Errorf("%d runs", runs.count())
	}
}

// TestThroughHooksAndRecord: hooks, rules, `_meta` and the record see the target; the record says how it was called.
func TestThroughHooksAndRecord(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice"}, settings: map[string]string{"sandbox.policy": "off", "permissions.deny": "Bash(rm *)"},
		hooks: []config.Hook{{Event: hooks.PreToolUse, Matcher: "Bash", Command: replaytest.HookScript(t, `cat >>"$1"`, told), Origin: "config.toml:1"}},
	})
	c := x.client("alice").Hello()
	if text := c.Does("call_tool", through("Bash", `{"command":"echo hi"}`)); strings.TrimSpace(text) != "hi" {
		t.Fatal(text)
	}
	m := replaytest.Heard(t, told, 1)[0]
	input, _ := m["tool_input"].(map[string]any)
	if m["tool_name"] != "Bash" && m["tool_name"] != "run_shell" || input["command"] != "echo hi" {
		t.Errorf("the hook was told %v", m)
	}
	got := c.Call("1", "call_tool", through("run_shell", `{"command":"rm -r x"}`), "")
	if text, failed := got.Text(); !failed || !strings.HasPrefix(text, "PERMISSION_DENIED: Permission denied: run_shell: rule Bash(rm *)") || !strings.Contains(got.Answer, `"tool":"run_shell"`) {
		t.Error(got.Answer)
	}
	got = c.Call("1", "call_tool", through("no_such_tool", `{}`), "")
	if !strings.Contains(got.Answer, `"codehand/error":{"code":"UNKNOWN_TOOL","tool":"call_tool","retryable":false}`) {
		t.Error(got.Answer)
	}
	must(t, x.stop())
	facts := recordsOf(t, x, "call.done", "run_shell")
	if len(facts) != 2 || facts[0].Via != "call_tool" || facts[1].Via != "call_tool" || facts[1].Code != "PERMISSION_DENIED" {
		t.Errorf("the record has %+v", facts)
	}
	if unknown := recordsOf(t, x, "call.done", "call_tool"); len(unknown) != 1 || unknown[0].Code != "UNKNOWN_TOOL" {
		t.Errorf("the record has %+v", unknown)
	}
}

// TestThroughRepeats: an edit that was just made is recognised, whichever way it came.
func TestThroughRepeats(t *testing.T) {
	t.Parallel()
	f := start(t, setup{})
	const edit = `{"file_path":"a.txt","old_string":"","new_string":"one\n"}`
	direct := f.Must(t, "edit_file", edit)
	if strings.HasPrefix(direct, "!") {
		t.Fatal(direct)
	}
	again, other := f.Must(t, "edit_file", edit), f.Must(t, "call_tool", through("edit_file", edit))
	if again != other {
		t.Errorf("by name: %s\nthrough call_tool: %s", again, other)
	}
}

// TestThroughCancels: a call through call_tool is cancelled and makes progress as a direct one.
func TestThroughCancels(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	ended := make(chan struct{})
	wait := fixtureTool("wait", reader, func(ctx context.Context, env tool.Env, _ word) (tool.Result, error) {
		env.Progress(1, 2, "half")
		close(began)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	})
	f := start(t, setup{tools: []tool.Tool{wait, dispatcher(t)}})
	must(t, f.Send(replaytest.CallLine(7, "call_tool", through("wait", `{}`), `"progressToken":"p"`)))
	<-began
	l, err := f.Receive()
	if err != nil || !strings.Contains(string(l), `"message":"half"`) {
		t.Errorf("progress: %s, %v", l, err)
	}
	must(t, f.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`))
	<-ended
}

// TestTaught: what follows an input that does not fit. Whoever was shown the schema is told nothing.
func TestTaught(t *testing.T) {
	t.Parallel()
	const hint = `"additionalProperties":false}`
	ends := func(w *replaytest.Wire, name, args, want string) {
		t.Helper()
		text := w.Must(t, name, args)
		if !strings.HasPrefix(text, "! INPUT_INVALID") || want != "" && !strings.HasSuffix(text, want) || want == "" && strings.Contains(text, "schema") {
			t.Errorf("%s %s: %s", name, args, text)
		}
	}
	legacy := start(t, setup{}).Wire
	ends(legacy, "todo_write", `{}`, hint)
	ends(legacy, "TodoWrite", `{}`, hint)
	replaytest.Uses(t, legacy, "tool_search", selects("todo_write"))
	ends(legacy, "todo_write", `{}`, "")
	ends(legacy, "read_file", `{}`, "")
	ends(legacy, "call_tool", through("read_file", `{}`), `"additionalProperties":false}`)
	ends(legacy, "call_tool", `{}`, "")
	modern := start(t, setup{modern: true}).Wire
	ends(modern, "todo_write", `{}`, hint)
	ends(start(t, setup{client: "claude-code", modern: true}).Wire, "todo_write", `{}`, "")
	ends(start(t, setup{settings: map[string]string{"tools.deferral": "off"}}).Wire, "todo_write", `{}`, "")
	ends(start(t, setup{settings: map[string]string{"permissions.deny": "tool_search"}}).Wire, "todo_write", `{}`, "")
}

// TestTaughtInPart: a schema of more than 4,000 characters is cut.
func TestTaughtInPart(t *testing.T) {
	t.Parallel()
	type bigInput struct {
		A string `json:"a" jsonschema:"a"`
	}
	schema := `{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("é", 5_000) + `"}},"required":["a"],"additionalProperties":false}`
	big := tool.Define(tool.Def[bigInput]{
		Spec: tool.Spec{Name: "big", Title: "Big one", Description: "Big.", Hint: "a big schema", Traits: reader},
		Run:  func(context.Context, tool.Env, bigInput) (tool.Result, error) { return tool.Result{}, nil },
	})
	big.Schema = json.RawMessage(schema)
	f := start(t, setup{tools: []tool.Tool{big, dispatcher(t)}})
	text := f.Must(t, "call_tool", through("big", `{}`))
	_, taught, ok := strings.Cut(text, "The schema of big, cut: ")
	if n := len([]rune(taught)); !ok || n != 4_000 || !strings.HasSuffix(taught, "…") {
		t.Errorf("%d characters of a schema: %.200s", n, text)
	}
	big.Spec.Deferred = true // called by its own name, where tool_search can show the whole
	f = start(t, setup{tools: append(tools.All(tools.Engines{}), big)})
	if text := f.Must(t, "big", `{}`); !strings.HasSuffix(text,
		`The schema of this tool was not loaded. Call tool_search with "select:big".`) {
		t.Errorf("a long schema: %.300s", text)
	}
}

// TestExplainThrough: what would become of a call through call_tool, of one that the profile forbids, and of one where
// call_tool is switched off.
func TestExplainThrough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set                 map[string]string
		input               string
		tool, verdict, code string
	}{
		{nil, through("Read", `{"file_path":"a"}`), "read_file", "allow", ""},
		{nil, through("read_file", `{}`), "read_file", "deny", "INPUT_INVALID"},
		{nil, through("nothing", `{}`), "call_tool", "deny", "UNKNOWN_TOOL"},
		{nil, `{}`, "call_tool", "deny", "INPUT_INVALID"},
		{map[string]string{"tools.profile": "readonly"}, through("write_file", `{"file_path":"a","content":"x"}`), "write_file", "deny", "TOOL_DISABLED"},
		{map[string]string{"tools.profile": "simple"}, through("read_file", `{"file_path":"a"}`), "call_tool", "deny", "TOOL_DISABLED"},
		{map[string]string{"permissions.deny": "call_tool"}, through("read_file", `{"file_path":"a"}`), "call_tool", "deny", ""},
	} {
		s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: testSettings(t, leaktest.Dir(t), filepath.Join(t.TempDir(), "state"), c.set), Tools: tools.All}})
		must(t, err)
		e, err := s.Explain(t.Context(), "call_tool", json.RawMessage(c.input))
		if err != nil || e.Tool != c.tool || e.Verdict != c.verdict || e.Code != c.code {
			t.Errorf("%v %s: %+v, %v", c.set, c.input, e, err)
		}
		must(t, s.Close())
	}
}

// TestRulesAboutDispatchers: rules about call_tool that decide nothing are spoken of; a bare deny rule is not.
func TestRulesAboutDispatchers(t *testing.T) {
	t.Parallel()
	for rules, warned := range map[[2]string]bool{
		{"permissions.deny", "call_tool"}: false, {"permissions.allow", "call_tool"}: false,
		{"permissions.ask", "call_tool"}: true, {"permissions.deny", "call_tool(name:run_shell)"}: true,
	} {
		var said replaytest.LockedBuffer
		log := slog.New(slog.NewTextHandler(&said, nil))
		s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: testSettings(t, leaktest.Dir(t), filepath.Join(t.TempDir(), "state"), map[string]string{rules[0]: rules[1]}), Tools: tools.All, Log: log}})
		must(t, err)
		must(t, s.Close())
		if strings.Contains(said.String(), "decides nothing") != warned {
			t.Errorf("%v: %s", rules, said.String())
		}
	}
}
