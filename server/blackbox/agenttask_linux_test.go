package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/server/replaytest"
	"codehand/tools/agent/loop"
	"codehand/tools/agent/modelstest"
)

// scripts answers each conversation by the script whose word its task holds.
type scripts struct {
	mu    sync.Mutex
	turns map[string][]modelstest.Turn
	asked map[string][]modelstest.Request
}

func (s *scripts) next(r modelstest.Request) modelstest.Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for word, turns := range s.turns {
		if bytes.Contains(r.Body, []byte(word)) {
			n := len(s.asked[word])
			s.asked[word] = append(s.asked[word], r)
			if n < len(turns) {
				return turns[n]
			}
		}
	}
	return modelstest.Turn{Status: 400, Raw: `{"error":{"type":"invalid_request_error","message":"the script is over"}}`}
}

func (s *scripts) requests(word string) []modelstest.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked[word])
}

// last is the body of the last request of a conversation.
func (s *scripts) last(word string) string {
	all := s.requests(word)
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1].Body)
}

// stepOf is a turn with calls, each `name {arguments}`.
func stepOf(text string, list ...string) modelstest.Turn {
	t := modelstest.Turn{Text: text, Tokens: loop.Tokens{Input: 100, Output: 20, CacheRead: 1000}}
	for _, c := range list {
		name, args, _ := strings.Cut(c, " ")
		t.Calls = append(t.Calls, modelstest.Call{Name: name, Arguments: args})
	}
	return t
}

// agentScripts are what the model says in TestAgentTask. Calls get their ids here.
func agentScripts() map[string][]modelstest.Turn {
	all := map[string][]modelstest.Turn{
		"MAIN-TASK": {
			stepOf("I look at three files – now.", `read_file {"file_path":"a.go"}`, `read_file {"file_path":"b.go"}`,
				`read_file {"file_path":"locked/c.go"}`),
			{Status: 429, Header: map[string]string{"Retry-After": "0.02"}, Raw: `{"error":{"type":"rate_limit_error","message":"slow down"}}`},
			stepOf("", `edit_file {"file_path":"locked/c.go","old_string":"two","new_string":"2"}`),
			stepOf("Then elsewhere.", `edit_file {"file_path":"a.go","old_string":"two","new_string":"<ä> \"2\" \\"}`),
			modelstest.Overloaded,
			stepOf("", `read_file {"file_path":"gone.go"}`),
			{Text: "This answer breaks in the middle of its text.", Break: true},
			stepOf("", `read_file {"file_path":"a.go`),
			stepOf("", `read_file ["a.go"]`),
			stepOf("", `delete_all {}`),
			stepOf("", `agent {"prompt":"MAIN-TASK again"}`),
			stepOf("", `grep_search {"pattern":"line","output_mode":"content","head_limit":0}`),
			stepOf("", `read_file`),
			stepOf("", `read_file {"file_path":"a.go"}`, `write_file {"file_path":"new.txt","content":"made\n"}`, `read_file {"file_path":"new.txt"}`),
			stepOf("Almost done.", `list_files {"pattern":"new.*"}`),
			stepOf("All is done."),
		},
		"TURNS-TASK":  {stepOf("One.", `list_files {"pattern":"*.go"}`), stepOf("Two.", `list_files {"pattern":"*.go"}`)},
		"TOKENS-TASK": {{Text: "Dear.", Calls: []modelstest.Call{{Name: "list_files", Arguments: `{"pattern":"*"}`}}, Tokens: loop.Tokens{Input: 90_000, Output: 10}}},
		"FULL-TASK":   {stepOf("Hm.", `list_files {"pattern":"*.go"}`), modelstest.Full},
		"HANG-TASK":   {{Text: strings.Repeat("on and on ", 20), Hang: true}},
		"PLAN-TASK": {
			stepOf("", `write_file {"file_path":"planned.txt","content":"x"}`, `run_shell {"command":"touch planned.txt"}`),
			stepOf("Not done."),
		},
	}
	for i := range 4 {
		all[fmt.Sprintf("PART-%d", i)] = []modelstest.Turn{
			stepOf("", fmt.Sprintf(`read_file {"file_path":"f%d.txt"}`, i)),
			stepOf("", fmt.Sprintf(`edit_file {"file_path":"f%d.txt","old_string":"old","new_string":"new %d"}`, i, i),
				fmt.Sprintf(`edit_file {"file_path":"f%d.txt","old_string":"new","new_string":"stolen"}`, (i+1)%4)),
			stepOf(fmt.Sprintf("Part %d is done.", i)),
		}
	}
	for word, turns := range all {
		for i := range turns {
			for k := range turns[i].Calls {
				turns[i].Calls[k].ID = fmt.Sprintf("%s-%d-%d", word, i, k)
			}
		}
	}
	return all
}

var (
	agentID = regexp.MustCompile(`agent_[a-z2-7]{12}`)
	// the names in the last line of a report
	usedTools = regexp.MustCompile(`( · \d+ tool calls?) \([^)]*\) · `)
	took      = regexp.MustCompile(` · [0-9.]+ m?s\]`)
	wholeAt   = regexp.MustCompile(`/[^ "]*/sessions/[^ "]*-grep_search.txt`)
	toolOf    = regexp.MustCompile(`"name":"([a-z_]+)"`)
)

// shownRequests are requests as the golden file has them, byte for byte but for this: what a request has in common with
// the one before is counted, the tools are named only, and long texts are cut.
func shownRequests(t *testing.T, work string, list []modelstest.Request) string {
	t.Helper()
	var out strings.Builder
	tools := regexp.MustCompile(`"tools":\[.*?\}\](,"system":|,$)`)
	before, said := "", []json.RawMessage(nil)
	for i, r := range list {
		head, tail, ok := strings.Cut(string(r.Body), `"messages":`)
		var messages []json.RawMessage
		end := json.NewDecoder(strings.NewReader(tail))
		if err := end.Decode(&messages); !ok || err != nil {
			t.Fatalf("request %d: %v: %s", i, err, r.Body)
		}
		rest := strings.TrimSpace(tail[end.InputOffset():])
		fmt.Fprintf(&out, "%d %s", i, r.Path)
		if head+rest != before {
			shown := tools.ReplaceAllStringFunc(head, func(text string) string {
				return `"tools":[` + strings.Join(toolNames(text), " ") + text[strings.LastIndexByte(text, ']'):]
			})
			fmt.Fprintf(&out, "\n  %s … %s", shown, rest)
		}
		same := 0
		for same < min(len(said), len(messages)) && bytes.Equal(said[same], messages[same]) {
			same++
		}
		fmt.Fprintf(&out, "\n  %d messages as before\n", same)
		for _, m := range messages[same:] {
			fmt.Fprintf(&out, "  %s\n", m)
		}
		before, said = head+rest, messages
	}
	return shorter(neutral(out.String(), work))
}

func toolNames(text string) (names []string) {
	for _, m := range toolOf.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// neutral takes out of a text what is different in each run.
//
// Which tools were used is left out: the tests of package server hold it.
func neutral(text, work string) string {
	text = strings.ReplaceAll(text, work, "$WORK")
	text = wholeAt.ReplaceAllString(text, "KEPT.txt")
	text = usedTools.ReplaceAllString(text, "$1 · ")
	return took.ReplaceAllString(agentID.ReplaceAllString(text, "agent_ID"), " · 1 s]")
}

// shorter cuts lines that are very long.
func shorter(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if n := len(l) - 6000; n > 0 {
			lines[i] = strings.ToValidUTF8(l[:3000], "") + fmt.Sprintf(" …%d bytes… ", n) + strings.ToValidUTF8(l[len(l)-3000:], "")
		}
	}
	return strings.Join(lines, "\n")
}

// holds compares a text with its golden file; -update writes it.
func holds(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "agenttask", name)
	if *update {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		gots, wants := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range gots {
			if i >= len(wants) || gots[i] != wants[i] {
				t.Errorf("%s differs at line %d (-update writes it): %.3000s", path, i+1, gots[i])
				return
			}
		}
		t.Errorf("%s has %d lines, want %d", path, len(gots), len(wants))
	}
}

// TestAgentTask: the built program leads a sub-agent through a long task with all that may go wrong, in both formats. What
// the model's server saw and what the client read are in golden files.
func TestAgentTask(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"anthropic", "openai"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			s := &scripts{turns: agentScripts(), asked: map[string][]modelstest.Request{}}
			m := modelstest.Start(t, s.next)
			p := newAgentProgram(t, "--agent-api-provider="+provider, "--agent-api-model=m", "--agent-api-base-url="+m.URL,
				"--permissions-mode=acceptEdits", "--permissions-deny=Edit(locked/**)", "--agent-max-tokens=80000",
				"--lsp-enabled=false")
			files := map[string]string{
				"a.go": "one\ntwo\n", "b.go": "three\n", "locked/c.go": "one\ntwo\n", "f0.txt": "old\n", "f1.txt": "old\n", "f2.txt": "old\n", "f3.txt": "old\n",
				"big.log":                 strings.Repeat("a line of a long file that is found again and again\n", 4000),
				".claude/agents/short.md": "---\nname: short\ndescription: Has few turns.\nmaxTurns: 2\n---\nBe brief.\n",
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				path := filepath.Join(p.work, name)
				must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				replaytest.WriteFile(t, path, []byte(files[name]))
			}
			work, err := filepath.EvalSymlinks(p.work)
			must(t, err)
			a := agentTask{t, p.start(), s, m, p.work}
			a.all()
			holds(t, provider+".requests", shownRequests(t, work, s.requests("MAIN-TASK")))
		})
	}
}

// An agentTask is one run of TestAgentTask.
type agentTask struct {
	t      *testing.T
	client *replaytest.Spawned
	model  *scripts
	server *modelstest.Server
	work   string
}

// all makes the calls in order: the last one leaves the session in plan mode.
func (a agentTask) all() {
	t := a.t
	said := func(args map[string]any) string { t.Helper(); return neutral(asks(t, a.client, "agent", args), a.work) }
	if got, want := said(map[string]any{"prompt": "MAIN-TASK: change the files.", "description": "change"}),
		"All is done.\n[agent agent_ID · general-purpose · 16 tool calls · 14,560 tokens · 1 s]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, want := range map[string]string{"a.go": "one\n<ä> \"2\" \\\n", "locked/c.go": "one\ntwo\n", "new.txt": "made\n"} {
		a.file(name, want)
	}
	for word, want := range map[string]string{
		"TURNS-TASK":  "AGENT_STOPPED: it used all of its 2 turns (maxTurns in $WORK/.claude/agents/short.md). Its last text:\nTwo.\n[agent agent_ID · short · 1 tool call · ",
		"TOKENS-TASK": "AGENT_STOPPED: it used all of its tokens (agent.max_tokens). The limit is the operator's. Its last text:\nDear.\n[agent agent_ID · short · 0 tool calls · 90,010 tokens",
		"FULL-TASK":   "AGENT_STOPPED: the context of its model is full. Give it a smaller task. Its last text:\nHm.\n[agent agent_ID · short · 1 tool call · ",
	} {
		if got := said(map[string]any{"prompt": word, "subagent_type": "short"}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got  %s\nwant %s", word, got, want)
		}
	}
	a.parts(said)
	a.hang()
	asks(t, a.client, "enter_plan_mode", map[string]any{})
	if got := said(map[string]any{"prompt": "PLAN-TASK"}); !strings.HasPrefix(got, "Not done.\n[agent ") {
		t.Error(got)
	}
	if n := strings.Count(a.model.last("PLAN-TASK"), `PLAN_MODE: `); n != 2 {
		t.Errorf("in plan mode %d of 2 calls were refused: %s", n, a.model.last("PLAN-TASK"))
	}
	if _, err := os.Stat(filepath.Join(a.work, "planned.txt")); err == nil {
		t.Error("in plan mode a sub-agent wrote a file")
	}
}

// parts runs four at once: each may change what it has read itself, and nothing else.
func (a agentTask) parts(said func(map[string]any) string) {
	var tasks []any
	for i := range 4 {
		tasks = append(tasks, map[string]any{"prompt": fmt.Sprintf("PART-%d", i)})
	}
	got := said(map[string]any{"tasks": tasks})
	for i := range 4 {
		if want := fmt.Sprintf("Part %d of 4, general-purpose: done\nPart %d is done.\n[agent agent_ID · ", i+1, i); !strings.Contains(got, want) {
			a.t.Errorf("part %d is not in %s", i, got)
		}
		a.file(fmt.Sprintf("f%d.txt", i), fmt.Sprintf("new %d\n", i))
		if last := a.model.last(fmt.Sprintf("PART-%d", i)); strings.Count(last, "FILE_NOT_READ: ") != 1 || strings.Count(last, "Edited f") != 1 {
			a.t.Errorf("part %d was told %s", i, last)
		}
	}
}

// hang cancels a call while the model's answer arrives.
func (a agentTask) hang() {
	must(a.t, a.client.Send(`{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"agent","arguments":{"prompt":"HANG-TASK"}}}`))
	<-a.server.Hung
	must(a.t, a.client.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"h"}}`))
	if text := asks(a.t, a.client, "job_list", map[string]any{}); strings.Contains(text, "running") {
		a.t.Errorf("after the cancel: %s", text)
	}
	if n := len(a.model.requests("HANG-TASK")); n != 1 {
		a.t.Errorf("the model was asked %d times", n)
	}
}

func (a agentTask) file(name, want string) {
	a.t.Helper()
	if b, err := os.ReadFile(filepath.Join(a.work, name)); err != nil || string(b) != want {
		a.t.Errorf("%s holds %q, want %q: %v", name, b, want, err)
	}
}
