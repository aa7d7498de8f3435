package hooks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/tools/permission"
)

// A said is what one script makes of a call.
type said struct {
	name   string
	bash   string
	python string

	opinions []permission.Verdict
	reason   string // in the reason
	input    string
	failure  string // in the log; "": nothing is
}

const answerPython = `
import json, sys
told = json.load(sys.stdin)
def answer(**specific):
    print(json.dumps({"hookSpecificOutput": dict(specific, hookEventName=told["hook_event_name"])}))
`

var scripts = []said{
	{name: "nothing", bash: `cat >/dev/null`, python: ``},
	{name: "words", bash: `echo looks fine`, python: `print("looks fine")`},
	{
		name: "allow", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"allow","permissionDecisionReason":"safe"}}'`,
		python: `answer(permissionDecision="allow", permissionDecisionReason="safe")`, opinions: verdicts(permission.Allow), reason: "safe",
	},
	{
		name: "deny", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"too wide"}}'`,
		python: `answer(permissionDecision="deny", permissionDecisionReason="too wide")`, opinions: verdicts(permission.Deny), reason: "too wide",
	},
	{
		name: "ask", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"who knows"}}'`,
		python: `answer(permissionDecision="ask", permissionDecisionReason="who knows")`, opinions: verdicts(permission.Ask), reason: "who knows",
	},
	{
		name: "defer", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"defer"}}'`,
		python: `answer(permissionDecision="defer")`, opinions: verdicts(permission.Ask),
	},
	{
		name: "exit 2", bash: `echo 'use the "deploy" tool' >&2; exit 2`, python: `sys.stderr.write("use the \"deploy\" tool\n"); sys.exit(2)`,
		opinions: verdicts(permission.Deny), reason: `use the "deploy" tool`,
	},
	{
		name: "exit 2 and allow", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"allow"}}'; echo no >&2; exit 2`,
		python: `answer(permissionDecision="allow"); sys.stderr.write("no"); sys.exit(2)`, opinions: verdicts(permission.Deny), reason: "no",
	},
	{
		name: "input", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls -l"}}}'`,
		python:   `answer(permissionDecision="allow", updatedInput=dict(told["tool_input"], command="ls -l"))`,
		opinions: verdicts(permission.Allow), input: `{"command":"ls -l"}`,
	},
	{
		name: "the same input", bash: `echo '{"hookSpecificOutput":{"updatedInput":{ "command" : "ls" }}}'`,
		python: `answer(updatedInput=told["tool_input"])`,
	},
	{ // whether it is one is for the pipeline to say, which binds it again
		name: "input that is none", bash: `echo '{"hookSpecificOutput":{"updatedInput":"ls -l"}}'`,
		python: `answer(updatedInput="ls -l")`, input: `"ls -l"`,
	},
	{
		name: "older approve", bash: `echo '{"decision":"approve","reason":"fine"}'`, python: `print('{"decision":"approve","reason":"fine"}')`,
		opinions: verdicts(permission.Allow), reason: "fine",
	},
	{
		name: "older block", bash: `echo '{"decision":"block","reason":"not here"}'`, python: `print('{"decision":"block","reason":"not here"}')`,
		opinions: verdicts(permission.Deny), reason: "not here",
	},
	{
		name: "stop", bash: `echo '{"continue":false,"stopReason":"budget spent"}'`, python: `print(json.dumps({"continue": False, "stopReason": "budget spent"}))`,
		opinions: verdicts(permission.Deny), reason: "budget spent",
	},
	{
		name: "crash", bash: `echo broken >&2; exit 1`, python: `raise SystemError("broken")`, failure: "exit code 1",
	},
	{
		name: "signal", bash: `kill -SEGV $$`, python: `import os, signal; os.kill(os.getpid(), signal.SIGSEGV)`, failure: "SIGSEGV",
	},
	{
		name: "crash with an answer", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"still no"}}'; exit 7`,
		python: `answer(permissionDecision="deny", permissionDecisionReason="still no"); sys.exit(7)`, opinions: verdicts(permission.Deny), reason: "still no",
	},
	{
		name: "no JSON", bash: `echo '{"hookSpecificOutput":'`, python: `print("{'permissionDecision': 'deny'}")`, failure: "no JSON",
	},
	{
		name: "unknown decision", bash: `echo '{"hookSpecificOutput":{"permissionDecision":"dney"}}'`,
		python: `answer(permissionDecision="dney")`, failure: "dney",
	},
	{
		name: "timeout", bash: `while :; do read -r -t 1 _ <> <(:); done`, python: "import time\nwhile True: time.sleep(1)", failure: "longer than it may",
	},
	{
		name: "timeout after an answer", bash: `echo '{"decision":"block","reason":"slow"}'; exec sleep 1000`,
		python:   "import time\nprint('{\"decision\":\"block\",\"reason\":\"slow\"}', flush=True)\ntime.sleep(1000)",
		opinions: verdicts(permission.Deny), reason: "slow",
	},
	{
		name: "1 MB of words", bash: `head -c 1000000 /dev/zero | tr '\0' x; head -c 1000000 /dev/zero | tr '\0' y >&2`,
		python: `sys.stdout.write("x" * 1_000_000); sys.stderr.write("y" * 1_000_000)`,
	},
	{
		name: "1 MB of reason", bash: `printf '{"decision":"block","reason":"'; head -c 1000000 /dev/zero | tr '\0' x; echo '"}'`,
		python:   `print(json.dumps({"decision": "block", "reason": "x" * 1_000_000}))`,
		opinions: verdicts(permission.Deny), reason: strings.Repeat("x", MaxText),
	},
	{
		name: "1 MB of errors", bash: `head -c 1000000 /dev/zero | tr '\0' y >&2; exit 2`, python: `sys.stderr.write("y" * 1_000_000); sys.exit(2)`,
		opinions: verdicts(permission.Deny), reason: strings.Repeat("y", MaxText),
	},
}

func verdicts(v ...permission.Verdict) []permission.Verdict { return v }

// Hook scripts run for real, in both languages.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, s := range scripts {
		for language, text := range map[string]string{"bash": s.bash, "python3": answerPython + s.python} {
			t.Run(s.name+" in "+language, func(t *testing.T) {
				t.Parallel()
				h := Hook{Event: PreToolUse, Command: script(t, language, text), Origin: "hooks.toml:7"}
				switch s.name {
				case "timeout":
					h.Timeout = 300 * time.Millisecond
				case "timeout after an answer":
					h.Timeout = 4 * time.Second
				}
				r, log := newRunner(t, Options{Hooks: []Hook{h}})
				o, err := r.Before(t.Context(), shellEvent(t, "ls"))
				for s.name == "timeout after an answer" && o.Opinions == nil && h.Timeout < hang { // python starts slowly on a busy machine
					h.Timeout *= 2
					r, log = newRunner(t, Options{Hooks: []Hook{h}})
					o, err = r.Before(t.Context(), shellEvent(t, "ls"))
				}
				must(t, err)
				if !slices.Equal(o.Opinions, s.opinions) || string(o.Input) != s.input && string(canonical(o.Input)) != s.input || o.Output != nil || o.Context != "" {
					t.Errorf("got %+v, input %s", o, o.Input)
				}
				if s.reason == "" && o.Reason != "" || !strings.Contains(o.Reason, s.reason) || len(o.Reason) > MaxText {
					t.Errorf("the reason is %.200q, want %.200q", o.Reason, s.reason)
				}
				switch {
				case s.failure == "" && log.String() != "":
					t.Errorf("in the log: %s", log.String())
				case s.failure != "":
					has(t, "the log", log.String(), s.failure)
					has(t, "the log", log.String(), "hook=hooks.toml:7")
				}
			})
		}
	}
}

// A hook that may decide and fails blocks the call, if the operator says so; one that decides does not fail.
func TestFailClosed(t *testing.T) {
	t.Parallel()
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := Hook{Event: PermissionRequest, Command: script(t, "bash", s.bash), Origin: "hooks.toml:7"}
			if strings.HasPrefix(s.name, "timeout") {
				h.Timeout = time.Second
			}
			r, _ := newRunner(t, Options{Hooks: []Hook{h}, FailClosed: true})
			o, err := r.Asked(t.Context(), shellEvent(t, "ls"))
			must(t, err)
			want := s.opinions
			if s.failure != "" {
				want = verdicts(permission.Deny)
				has(t, "the reason", o.Reason, "The hook at hooks.toml:7 failed, and hooks.fail_closed is set.")
			}
			if !slices.Equal(o.Opinions, want) {
				t.Errorf("got %+v", o)
			}
		})
	}
	t.Run("cannot start", func(t *testing.T) {
		t.Parallel()
		h := Hook{Event: PreToolUse, Command: []string{filepath.Join(t.TempDir(), "gone")}, Origin: "hooks.toml:9"}
		for _, closed := range []bool{false, true} {
			r, log := newRunner(t, Options{Hooks: []Hook{h}, FailClosed: closed})
			o, err := r.Before(t.Context(), shellEvent(t, "ls"))
			if err != nil || (len(o.Opinions) == 1) != closed {
				t.Errorf("closed %v: %+v, %v", closed, o, err)
			}
			has(t, "the log", log.String(), "no such file")
		}
	})
}

// Two scripts see the same call, and do not agree.
func TestTwoScripts(t *testing.T) {
	t.Parallel()
	allow, deny, ask := `echo '{"decision":"allow","reason":"a"}'`, `print('{"decision":"deny","reason":"d"}')`, `echo '{"decision":"ask","reason":"q"}'`
	postpone := `echo '{"decision":"defer","reason":"p"}'`
	input := `echo '{"hookSpecificOutput":{"updatedInput":{"command":"%s"}}}'`
	tests := []struct {
		name    string
		texts   []string // with print: python
		verdict []permission.Verdict
		reason  string
		input   string
	}{
		{"deny beats allow", []string{allow, deny}, verdicts(permission.Deny), "d", ""},
		{"deny beats all", []string{postpone, deny, ask, allow}, verdicts(permission.Deny), "d", ""},
		{"ask beats allow", []string{allow, ask}, verdicts(permission.Allow, permission.Ask), "q", ""},
		{"defer beats ask", []string{ask, postpone, allow}, verdicts(permission.Ask, permission.Ask, permission.Allow), "p", ""},
		{"two inputs", []string{fmt.Sprintf(input, "a"), fmt.Sprintf(input, "b")}, verdicts(permission.Deny), "Two hooks changed the input in different ways. Tell the operator.", ""},
		{"one input twice", []string{fmt.Sprintf(input, "a"), " " + fmt.Sprintf(input, "a")}, nil, "", `{"command":"a"}`},
		{"one input", []string{fmt.Sprintf(input, "a"), fmt.Sprintf(input, "ls")}, nil, "", `{"command":"a"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var list []Hook
			for _, text := range tt.texts {
				language := "bash"
				if strings.HasPrefix(text, "print") {
					language = "python3"
				}
				list = append(list, Hook{Event: PreToolUse, Command: script(t, language, text), Origin: "at " + text})
			}
			r, _ := newRunner(t, Options{Hooks: list})
			o, err := r.Before(t.Context(), shellEvent(t, "ls"))
			if one := len(tt.reason) == 1; one != (o.Origin != "") || one && !strings.Contains(o.Origin, `"`+tt.reason+`"`) {
				t.Errorf("the reason is that of %q", o.Origin) // the record says which hook decided
			}
			if err != nil || !slices.Equal(o.Opinions, tt.verdict) || o.Reason != tt.reason || string(o.Input) != tt.input {
				t.Errorf("got %+v, input %s, %v", o, o.Input, err)
			}
		})
	}
}

// A hook of the project may refuse and ask; it allows nothing, neither by itself nor by what it makes of a call that
// another one has allowed.
func TestProjectHooks(t *testing.T) {
	t.Parallel()
	allow, deny, ask := `echo '{"decision":"allow","reason":"a"}'`, `echo '{"decision":"deny","reason":"d"}'`, `echo '{"decision":"ask","reason":"q"}'`
	input := `echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"b"}}}'`
	tests := []struct {
		name, user, project string
		verdict             []permission.Verdict
		reason, input       string
	}{
		{"allow", ``, allow, nil, "", ""},
		{"deny", allow, deny, verdicts(permission.Deny), "d", ""},
		{"ask", allow, ask, verdicts(permission.Allow, permission.Ask), "q", ""},
		{"another input", allow, input, nil, "", `{"command":"b"}`},
		{"another input and ask", ask, input, verdicts(permission.Ask), "q", `{"command":"b"}`},
		{"the same input as the user's", input, input, verdicts(permission.Allow), "", `{"command":"b"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, _ := newRunner(t, Options{Hooks: []Hook{
				{Event: PreToolUse, Command: script(t, "bash", tt.user)}, {Event: PreToolUse, Command: script(t, "bash", tt.project), Project: true},
			}})
			o, err := r.Before(t.Context(), shellEvent(t, "ls"))
			if err != nil || !slices.Equal(o.Opinions, tt.verdict) || o.Reason != tt.reason || string(o.Input) != tt.input {
				t.Errorf("got %+v, input %s, %v", o, o.Input, err)
			}
		})
	}
}

// What hooks may say about a result.
func TestScriptsAfter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		failed     bool
		want       Outcome
		output     string
	}{
		{name: "nothing", text: `cat >/dev/null`},
		{name: "exit 2", text: `echo '3 tests fail' >&2; exit 2`, want: Outcome{Opinions: verdicts(permission.Deny), Reason: "3 tests fail"}},
		{name: "block", text: `echo '{"decision":"block","reason":"no tests"}'`, want: Outcome{Opinions: verdicts(permission.Deny), Reason: "no tests"}},
		{name: "stop", text: `echo '{"continue":false,"stopReason":"enough"}'`, want: Outcome{Opinions: verdicts(permission.Deny), Reason: "enough"}},
		{name: "approve", text: `echo '{"decision":"approve","reason":"fine"}'`},
		{name: "context", text: `echo '{"hookSpecificOutput":{"additionalContext":"see also b.go"}}'`, want: Outcome{Context: "see also b.go"}},
		{name: "context on top", text: `echo '{"additionalContext":"see also b.go"}'`, want: Outcome{Context: "see also b.go"}},
		{name: "output", text: `echo '{"hookSpecificOutput":{"updatedToolOutput":"[hidden]"}}'`, output: "[hidden]"},
		{name: "no output", text: `echo '{"updatedToolOutput":""}'`, output: ""},
		{name: "no decision about what is done", text: `echo '{"hookSpecificOutput":{"permissionDecision":"deny","updatedInput":{"command":"x"}}}'`},
		{name: "crash", text: `exit 1`},
		{name: "sees the result", text: `[[ $(cat) == *'"tool_response":"a & b"'*'"duration_ms":1500'* ]] || { echo no >&2; exit 2; }`},
		{name: "sees the failure", failed: true, text: `[[ $(cat) == *'"hook_event_name":"PostToolUseFailure"'*'"tool_response":"a & b","error":"a & b"'* ]] || { echo no >&2; exit 2; }`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			command := script(t, "bash", tt.text)
			r, _ := newRunner(t, Options{FailClosed: true, Hooks: []Hook{
				{Event: PostToolUse, Command: command}, {Event: PostToolUseFailure, Command: command},
			}})
			e := shellEvent(t, "ls")
			e.Response, e.Failed, e.Took = "a & b", tt.failed, 1500*time.Millisecond
			o, err := r.After(t.Context(), e)
			if err != nil || !slices.Equal(o.Opinions, tt.want.Opinions) || o.Reason != tt.want.Reason || o.Context != tt.want.Context || o.Input != nil {
				t.Errorf("got %+v, %v", o, err)
			}
			if replaced := strings.Contains(tt.text, "updatedToolOutput"); (o.Output != nil) != replaced || replaced && *o.Output != tt.output {
				t.Errorf("output %v", o.Output)
			}
		})
	}
}

// A guard as people have it for other agents: it reads tool_name and tool_input from standard input, knows the project's
// directory from its environment, and refuses with exit code 2.
func TestScriptOfAnotherAgent(t *testing.T) {
	t.Parallel()
	const guard = `#!/usr/bin/env bash
set -euo pipefail
input=$(cat)
field() { sed -nE "s/.*\"$1\":\"(([^\"\\\\]|\\\\.)*)\".*/\1/p" <<<"$input"; }
[ "$(field hook_event_name)" = PreToolUse ] || exit 0
[ "$(field tool_name)" = Bash ] || exit 0
[ -n "$(field session_id)" ] && [ "$(field transcript_path)" = "" ] && [ "$(field permission_mode)" = acceptEdits ]
cd "$CLAUDE_PROJECT_DIR"
[ "$PWD" = "$(field cwd)" ] && [ "$PWD" = "$CODEHAND_PROJECT_DIR" ]
command=$(field command)
if [[ $command =~ (^|[[:space:];&|])rm[[:space:]]+-[a-zA-Z]*r ]]; then
	echo "Blocked: $command removes directories" >&2
	exit 2
fi
if [[ $command == "git commit"* ]]; then
	printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"%s"}}\n' "a commit"
	exit 0
fi
echo '{"suppressOutput":true,"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
`
	r, log := newRunner(t, Options{FailClosed: true, Hooks: []Hook{{Event: PreToolUse, Matcher: "Bash", Command: script(t, "bash", guard)}}})
	for command, want := range map[string]Outcome{
		"make && rm -rf build": {Opinions: verdicts(permission.Deny), Reason: "Blocked: make && rm -rf build removes directories"},
		"git commit -m x":      {Opinions: verdicts(permission.Ask), Reason: "a commit"},
		"make test":            {Opinions: verdicts(permission.Allow)},
	} {
		o, err := r.Before(t.Context(), shellEvent(t, command))
		if err != nil || !slices.Equal(o.Opinions, want.Opinions) || o.Reason != want.Reason {
			t.Errorf("%s: %+v, %v\n%s", command, o, err, log.String())
		}
	}
	e := shellEvent(t, "rm -rf /")
	e.Tool, e.Aliases = "edit_file", []string{"Edit"}
	if o, err := r.Before(t.Context(), e); err != nil || o.Opinions != nil {
		t.Errorf("another tool: %+v, %v", o, err)
	}
}

// What a hook is told, byte for byte.
func TestTold(t *testing.T) {
	t.Parallel()
	base := Event{Session: "s", Place: Place{Cwd: "/w"}, Mode: permission.Plan}
	call := base
	call.Tool, call.Aliases, call.Input, call.Call = "run_shell", []string{"Bash"}, []byte(`{"command":"a && b > c"}`), "c1"
	agent := call
	agent.Agent, agent.AgentType = "a1", "explore"
	tests := []struct {
		name string
		e    Event
		own  bool
		more string
	}{
		{PreToolUse, call, false, `"tool_name":"Bash","tool_input":{"command":"a && b > c"},"tool_use_id":"c1"`},
		{PreToolUse, call, true, `"tool_name":"run_shell","tool_input":{"command":"a && b > c"},"tool_use_id":"c1"`},
		{PermissionRequest, agent, false, `"agent_id":"a1","agent_type":"explore","tool_name":"Bash","tool_input":{"command":"a && b > c"},"tool_use_id":"c1"`},
		{SessionStart, func() Event { e := base; e.Source = "startup"; return e }(), false, `"source":"startup"`},
		{SessionEnd, func() Event { e := base; e.Reason = "idle"; return e }(), false, `"reason":"idle"`},
		{FileChanged, func() Event { e := base; e.Tool, e.File = "x", "/w/f"; return e }(), false, `"tool_name":"x","file_path":"/w/f"`},
	}
	for _, tt := range tests {
		r := &Runner{o: Options{OwnNames: tt.own}}
		tt.e.Name = tt.name
		got, err := r.input(tt.e)
		want := `{"session_id":"s","transcript_path":"","cwd":"/w","permission_mode":"plan","hook_event_name":"` + tt.name + `",` + tt.more + "}\n"
		if err != nil || string(got) != want {
			t.Errorf("got  %swant %s%v", got, want, err)
		}
	}
}

// A hook gets what commands get, and nothing that sounds like a secret.
func TestEnvironment(t *testing.T) {
	t.Setenv("HOOK_TEST_TOKEN", "secret")
	t.Setenv("HOOK_TEST_OTHER", "other")
	t.Setenv("CODEHAND_STATE_DIR", "/state")
	e := shellEvent(t, "ls")
	bin := filepath.Join(e.Roots[0], "bin")
	must(t, os.Mkdir(bin, 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	out := filepath.Join(t.TempDir(), "env")
	r, log := newRunner(t, Options{EnvAllow: []string{"HOOK_TEST_*"}, Hooks: []Hook{{Event: PreToolUse, Command: append(script(t, "bash", `env >"$1"; pwd >>"$1"`), out)}}})
	_, err := r.Before(t.Context(), e)
	must(t, err)
	text, err := os.ReadFile(out)
	must(t, err)
	for _, want := range []string{"HOOK_TEST_OTHER=other\n", "CLAUDE_PROJECT_DIR=" + e.Roots[0] + "\n", "CODEHAND_PROJECT_DIR=" + e.Roots[0] + "\n", "\n" + e.Cwd + "\n"} {
		has(t, "the environment", string(text), want)
	}
	for _, no := range []string{"secret", "/state", bin} {
		if strings.Contains(string(text), no) {
			t.Errorf("%s is in the environment:\n%s", no, text)
		}
	}
	if log.String() != "" {
		t.Error(log.String())
	}
}
