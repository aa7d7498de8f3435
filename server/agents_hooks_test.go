package server

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/config"
	"codehand/server/replaytest"
	"codehand/tools/hooks"
	"codehand/tools/permission"
)

// agentHooks are hooks of all that sub-agents do, which note what they are told. start is what those of their start do
// besides.
func agentHooks(t *testing.T, out, start string) func(*config.Config) {
	note := replaytest.HookScript(t, `cat >>"$1"`, out)
	begin := replaytest.HookScript(t, "cat >>\"$1\"\n"+start, out)
	return func(c *config.Config) {
		c.Hooks.Entries = []config.Hook{
			{Event: hooks.SubagentStart, Command: begin, Origin: "config.toml:1"},
			{Event: hooks.SubagentStop, Matcher: "explore|plan", Command: note, Origin: "config.toml:5"},
			{Event: hooks.PreToolUse, Matcher: "Read", Command: note, Origin: "config.toml:9"},
		}
	}
}

// toldOfAgents are n lines that hooks wrote: the event, the type, the tool and the reason. All are of one sub-agent.
func toldOfAgents(t *testing.T, f *fixture, out string, n int) (lines []string) {
	t.Helper()
	ids := map[any]bool{}
	for _, m := range replaytest.Heard(t, out, n) {
		lines = append(lines, fmt.Sprintf("%v %v %v %v", m["hook_event_name"], m["agent_type"], m["tool_name"], m["reason"]))
		ids[m["agent_id"]] = true
		mode := "default"
		if m["tool_name"] != nil {
			mode = "plan" // that of explore
		}
		if m["cwd"] != f.work || m["permission_mode"] != mode || m["session_id"] == "" || !strings.HasPrefix(fmt.Sprint(m["agent_id"]), "agent_") {
			t.Errorf("told %v", m)
		}
	}
	if len(ids) != 1 {
		t.Errorf("%d sub-agents: %v", len(ids), ids)
	}
	return lines
}

// Hooks are told when a sub-agent starts and how it ended, also when it goes on, and which of them makes a call; what
// the start hooks say is among its instructions.
func TestAgentHooks(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	m := &scripted{script: map[string][]scriptTurn{"FIND": {
		{calls: []string{`read_file {"file_path":"a.txt"}`}}, {text: "found"}, {text: "still there"},
	}}}
	f := start(t, setup{model: m, change: agentHooks(t, out,
		`echo '{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"Be brief, says the operator."}}'`)})
	replaytest.WriteFile(t, filepath.Join(f.work, "a.txt"), []byte("one\n"))
	if text, bad := f.say(t, "agent", `{"name":"finder","prompt":"FIND","subagent_type":"Explore"}`); bad || !strings.HasPrefix(text, "found\n") {
		t.Fatal(text)
	}
	want := []string{"SubagentStart explore <nil> <nil>", "PreToolUse explore Read <nil>", "SubagentStop explore <nil> done"}
	if got := toldOfAgents(t, f, out, 3); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
	if text, bad := f.say(t, "send_message", `{"to":"finder","message":"and now?"}`); bad || !strings.HasPrefix(text, "still there\n") {
		t.Fatal(text)
	}
	want = append(want, want[0], want[2])
	if got := toldOfAgents(t, f, out, 5); !slices.Equal(got, want) {
		t.Errorf("told %q", got)
	}
	for i, turn := range m.heard["FIND"] {
		if strings.Count(turn.System, "Be brief, says the operator.") != 1 {
			t.Errorf("turn %d: %s", i, turn.System)
		}
	}
}

// A hook that blocks the start keeps all sub-agents of the call from starting, also in the background, and is named; one
// that fails does only where hooks fail closed.
func TestAgentHooksBlock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		closed bool
		want   string
	}{
		"exit 2":      {`echo 'no helpers here' >&2; exit 2`, false, "HOOK_BLOCKED: Blocked by a hook: no helpers here\nThe operator can change that hook (config.toml:1); tell the user."},
		"deny":        {`echo '{"decision":"block","reason":"not today"}'`, false, "HOOK_BLOCKED: Blocked by a hook: not today\n"},
		"stop":        {`echo '{"continue":false,"stopReason":"enough"}'`, false, "HOOK_BLOCKED: Blocked by a hook: enough\n"},
		"ask":         {`echo '{"hookSpecificOutput":{"permissionDecision":"ask"}}'`, false, "HOOK_BLOCKED: Blocked by a hook: it wants a person to decide (nobody is asked about the start of a sub-agent)\n"},
		"fail closed": {`exit 1`, true, "HOOK_BLOCKED: Blocked by a hook: The hook at config.toml:1 failed"},
		"fail":        {`exit 1`, false, "done\n[agent "},
		"allow":       {`echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"x":1}}}'`, false, "done\n[agent "},
		"nonsense":    {`echo '{"decision":"perhaps"}'`, false, "done\n[agent "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{script: map[string][]scriptTurn{"WORK": {{text: "done"}}}}
			note := agentHooks(t, filepath.Join(t.TempDir(), "told"), c.script)
			f := start(t, setup{model: m, change: func(cfg *config.Config) { note(cfg); cfg.Hooks.FailClosed = c.closed }})
			blocked := strings.HasPrefix(c.want, "HOOK_BLOCKED")
			text, bad := f.say(t, "agent", `{"prompt":"WORK","subagent_type":"plan"}`)
			if bad != blocked || !strings.HasPrefix(text, c.want) {
				t.Errorf("error %t: %s", bad, text)
			}
			if !blocked {
				return
			}
			if text, bad := f.say(t, "agent", `{"prompt":"WORK","run_in_background":true}`); !bad || !strings.HasPrefix(text, c.want) {
				t.Errorf("in the background: %s", text)
			}
			if m.heard["WORK"] != nil || f.server.engines.Agents.Holds("local", "") {
				t.Error("it has started")
			}
		})
	}
}

// Where one of several is blocked, none starts, and the hooks learn that the others have ended.
func TestAgentHooksBlockOneOfSeveral(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	m := &scripted{script: map[string][]scriptTurn{"WORK": {{text: "done"}}}}
	f := start(t, setup{model: m, change: agentHooks(t, out, `if grep -q '"agent_type":"plan"' "$1"; then echo 'no plans' >&2; exit 2; fi; exit 0`)})
	text, bad := f.say(t, "agent", `{"tasks":[{"prompt":"WORK","subagent_type":"plan"}]}`)
	if !bad || !strings.HasPrefix(text, "HOOK_BLOCKED: Blocked by a hook: no plans\n") {
		t.Fatal(text)
	}
	out2 := filepath.Join(t.TempDir(), "told")
	f = start(t, setup{model: m, change: func(c *config.Config) {
		agentHooks(t, out2, "")(c)
		c.Hooks.Entries = append(c.Hooks.Entries, config.Hook{Event: hooks.SubagentStart, Matcher: "plan",
			Command: replaytest.HookScript(t, `echo 'no plans' >&2; exit 2`), Origin: "config.toml:20"})
	}})
	text, bad = f.say(t, "agent", `{"tasks":[{"prompt":"WORK","subagent_type":"explore"},{"prompt":"WORK","subagent_type":"plan"}]}`)
	if !bad || !strings.Contains(text, "no plans\nThe operator can change that hook (config.toml:20)") || m.heard["WORK"] != nil {
		t.Errorf("error %t, model asked %t: %s", bad, m.heard["WORK"] != nil, text)
	}
	var ended []any
	for _, m := range replaytest.Heard(t, out2, 3) {
		if m["hook_event_name"] == hooks.SubagentStop {
			ended = append(ended, m["agent_type"], m["reason"])
		}
	}
	if want := []any{"explore", "cancelled"}; !slices.Equal(ended, want) {
		t.Errorf("ended: %v, want %v", ended, want)
	}
}

// Sub-agents in the command line of another agent and in the client's own model have the same hooks; a brief has none.
func TestAgentHooksOfOtherBackends(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "told")
	program := replaytest.HookScript(t, `cat; echo; echo reported`)
	note := agentHooks(t, out, `echo '{"additionalContext":"Be brief."}'`)
	f := start(t, setup{settings: map[string]string{"permissions.mode": "default"}, change: func(c *config.Config) {
		note(c)
		c.Tools.Agent.Command.Argv = program
		c.Permissions.Allow = append(c.Permissions.Allow, permission.Rule{Text: "Agent", Origin: "config.toml:30"})
	}})
	text, bad := f.say(t, "agent", `{"prompt":"WORK","subagent_type":"explore"}`)
	if bad || !strings.Contains(text, "Be brief.") || !strings.Contains(text, "reported\n[agent ") {
		t.Errorf("command: %s", text)
	}
	want := []string{"SubagentStart explore <nil> <nil>", "SubagentStop explore <nil> done"}
	if got := toldOfAgents(t, f, out, 2); !slices.Equal(got, want) {
		t.Errorf("command: told %q", got)
	}

	out = filepath.Join(t.TempDir(), "told")
	f = start(t, setup{silent: true, settings: map[string]string{"agent.sampling": "true"}, change: agentHooks(t, out, "")})
	text = askedBySampling(t, f, `{"sampling":{"tools":{}}}`, "agent", `{"prompt":"WORK","subagent_type":"explore"}`,
		func(json.RawMessage) string {
			return `"result":{"role":"assistant","model":"m","stopReason":"endTurn","content":{"type":"text","text":"sampled"}}`
		})
	if !strings.HasPrefix(text, "sampled\n[agent ") {
		t.Errorf("sampling: %s", text)
	}
	if got := toldOfAgents(t, f, out, 2); !slices.Equal(got, want) {
		t.Errorf("sampling: told %q", got)
	}

	f = start(t, setup{change: agentHooks(t, filepath.Join(t.TempDir(), "told"), "exit 2")})
	if text, bad := f.say(t, "agent", `{"prompt":"WORK","subagent_type":"explore"}`); bad || !strings.HasPrefix(text, "NOT EXECUTED: ") {
		t.Errorf("brief: %s", text)
	}
}

// askedBySampling makes one call as a legacy client with these capabilities. answer makes the members of what it says to
// each request for its model, by the parameters; "": it says nothing. The text of the result is returned, with `! ` before
// that of an error.
func askedBySampling(t *testing.T, f *fixture, caps, tool, args string, answer func(params json.RawMessage) string) string {
	t.Helper()
	must(t, f.Send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+caps+`,"clientInfo":{"name":"x","version":"1"}}}`))
	must(t, f.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	must(t, f.Send(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"`+tool+`","arguments":`+args+`}}`))
	for {
		line, err := f.Receive()
		must(t, err)
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
		}
		must(t, json.Unmarshal(line, &m))
		switch {
		case m.Method == "sampling/createMessage":
			if said := answer(m.Params); said != "" {
				must(t, f.Send(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+said+`}`))
			}
		case string(m.ID) == `"c"` && m.Result.IsError:
			return "! " + m.Result.Content[0].Text
		case string(m.ID) == `"c"`:
			return m.Result.Content[0].Text
		}
	}
}
