package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// agentKey is the key that is planted: it may appear nowhere but in requests to the model.
const agentKey = "planted-key-4f1d9c77aa0b"

// A modelServer speaks OpenAI Chat Completions as far as these tests need it: each request gets the next answer.
type modelServer struct {
	*httptest.Server
	mu      sync.Mutex
	answers []string // lines of `name {arguments}`, or a text; "hold": no answer until the client is gone
	asked   int
	keys    map[string]bool
	bodies  []string
}

func newModelServer(t *testing.T, answers ...string) *modelServer {
	m := &modelServer{answers: answers, keys: map[string]bool{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *modelServer) serve(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	m.mu.Lock()
	m.keys[r.Header.Get("Authorization")] = true
	m.bodies = append(m.bodies, body.String())
	n := m.asked
	m.asked++
	m.mu.Unlock()
	answer := "the script is over"
	if n < len(m.answers) {
		answer = m.answers[n]
	}
	if answer == "hold" {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(v any) {
		b, _ := json.Marshal(v)
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
	}
	delta, finish := map[string]any{"role": "assistant"}, "stop"
	if name, args, ok := strings.Cut(answer, " {"); ok {
		finish = "tool_calls"
		delta["tool_calls"] = []any{map[string]any{"index": 0, "id": fmt.Sprintf("call_%d", n), "type": "function",
			"function": map[string]any{"name": name, "arguments": "{" + args}}}
	} else {
		delta["content"] = answer
	}
	event(map[string]any{"id": "x", "object": "chat.completion.chunk", "choices": []any{map[string]any{"index": 0, "delta": delta}}})
	event(map[string]any{"id": "x", "object": "chat.completion.chunk", "choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}},
		"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 10}})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *modelServer) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// An agentProgram is the built program with a home of its own, which a test may start again.
type agentProgram struct {
	t          *testing.T
	work, base string
	flags      []string
}

func newAgentProgram(t *testing.T, flags ...string) *agentProgram {
	p := &agentProgram{t: t, work: leaktest.Dir(t), base: leaktest.Dir(t), flags: flags}
	return p
}

func (p *agentProgram) start(env ...string) *replaytest.Spawned {
	cmd := exec.Command(replaytest.Program(p.t), append([]string{"stdio", p.work}, p.flags...)...)
	cmd.Dir = p.work
	cmd.Env = append([]string{"HOME=" + p.base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + p.base, "CODEHAND_SESSION=" + replaytest.Handle}, env...)
	return replaytest.Speak(p.t, cmd, "agent-test", false)
}

// asks makes a call and returns its text.
func asks(t *testing.T, p *replaytest.Spawned, tool string, args map[string]any) string {
	t.Helper()
	r, err := p.Request("tools/call", map[string]any{"name": tool, "arguments": args})
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(r.Result, &result); err != nil || len(result.Content) == 0 {
		t.Fatalf("%s: %s %v", tool, r.Result, err)
	}
	return result.Content[0].Text
}

// noKeyBelow fails if a file in dir holds the planted key.
func noKeyBelow(t *testing.T, dir, but string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == but {
			return nil
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(agentKey)) {
			t.Errorf("%s holds the key", path)
		}
		return nil
	})
}

// TestAgentProgram: the built program runs a sub-agent with a model behind an API. The key is in its requests and nowhere
// else: not in results, logs, audit, state, or the environment of commands. A key file that others can read is refused.
func TestAgentProgram(t *testing.T) {
	t.Parallel()
	m := newModelServer(t, `run_shell {"command":"env; cat a.txt"}`, `write_file {"file_path":"b.txt","content":"made\n"}`, "It says one.")
	p := newAgentProgram(t)
	key := filepath.Join(p.base, "key")
	replaytest.WriteFile(t, key, []byte(agentKey+"\n"))
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	replaytest.WriteFile(t, filepath.Join(p.work, "a.txt"), []byte("one\n"))
	p.flags = []string{"--agent-api-provider=openai", "--agent-api-model=m", "--agent-api-base-url=" + m.URL, "--agent-api-key-file=" + key,
		"--permissions-mode=bypassPermissions", "--log-level=debug"}
	s := p.start("MY_SECRET_KEY=" + agentKey)
	task := map[string]any{"description": "look", "prompt": "What does a.txt say?"}
	if text := asks(t, s, "agent", task); !strings.HasPrefix(text, "AGENT_FAILED: ") || !strings.Contains(text, "the file "+key) || m.count() != 0 {
		t.Errorf("a key that others can read: %s", text)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	text := asks(t, s, "agent", task)
	if !strings.HasPrefix(text, "It says one.\n[agent agent_") || !strings.Contains(text, " 2 tool calls (") || !strings.Contains(text, ") · 330 tokens · ") {
		t.Errorf("%s", text)
	}
	if b, err := os.ReadFile(filepath.Join(p.work, "b.txt")); err != nil || string(b) != "made\n" {
		t.Errorf("the sub-agent's file: %q, %v", b, err)
	}
	if text := asks(t, s, "file_history", map[string]any{}); !strings.Contains(text, "b.txt") {
		t.Errorf("the journal does not have the sub-agent's change: %s", text)
	}
	if len(m.keys) != 1 || !m.keys["Bearer "+agentKey] {
		t.Errorf("keys: %v", m.keys)
	}
	for _, body := range m.bodies {
		if strings.Contains(body, agentKey) {
			t.Errorf("the key reaches the model: %s", body)
		}
	}
	noKeyBelow(t, p.base, key)
	if strings.Contains(s.Stderr.String(), agentKey) {
		t.Error("the key is in the log")
	}
}

// TestAgentKilled: kill -9 of the server while a sub-agent runs a command leaves no process, and the next session is told.
func TestAgentKilled(t *testing.T) {
	t.Parallel()
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprint("background=", background), func(t *testing.T) {
			t.Parallel()
			m := newModelServer(t, "list_files {\"pattern\":\"*\"}", "hold")
			p := newAgentProgram(t, "--agent-api-provider=openai", "--agent-api-model=m", "--agent-api-base-url="+m.URL)
			s := p.start()
			args := fmt.Sprintf(`{"prompt":"look","subagent_type":"explore","run_in_background":%v}`, background)
			if err := s.Send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"agent","arguments":` + args + `}}`); err != nil {
				t.Fatal(err)
			}
			replaytest.Until(t, "the model is asked twice", func() bool { return m.count() == 2 })
			replaytest.Until(t, "the session is written down, which takes 2 s", func() bool {
				files, _ := filepath.Glob(filepath.Join(p.base, "codehand", "sessions", "*", "*", "state.json"))
				for _, file := range files {
					if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(`"job.job_`)) {
						return true
					}
				}
				return false
			})
			if err := s.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for range s.Lines {
			}
			_ = s.Cmd.Wait()
			text := asks(t, p.start(), "list_files", map[string]any{"pattern": "*"})
			if !regexp.MustCompile(`\[job job_[a-z2-7]{12} finished: ended with its server, `).MatchString(text) {
				t.Errorf("the next session reads %q", text)
			}
		})
	}
}

// standIn is a command line of another agent: it says what it was given, and makes a process that outlives it.
const standIn = `#!/bin/sh
prompt=$(cat)
echo "depth $CODEHAND_AGENT_DEPTH, secret ${MY_SECRET_KEY:-none}, allowed ${OTHER:-none}, in $(pwd), model $2"
case "$prompt" in *"Find it."*) echo "has the task";; esac
grep -q '"--permissions-mode=acceptEdits"' "$1" && grep -q '"CODEHAND_AGENT_DEPTH": "1"' "$1" && echo "has the server"
stat -c %a "$1"
case "$prompt" in *HANG*) sleep 600 & echo $! > "$3"; wait;; *FAIL*) echo "no credit" >&2; exit 3;; esac
`

// TestAgentCommand: the command line of another agent gets the task, our server, a depth and no secrets; its output is the
// report; a cancel ends its whole tree; the server does not start with flags that switch its questions off.
func TestAgentCommand(t *testing.T) {
	t.Parallel()
	p := newAgentProgram(t)
	program, pid := filepath.Join(p.base, "other"), filepath.Join(p.base, "pid")
	replaytest.WriteFile(t, program, []byte(standIn))
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	p.flags = []string{"--agent-command-argv=" + program + ",{mcp_config},{model}," + pid, "--agent-command-env-allow=OTHER", "--permissions-mode=acceptEdits",
		"--permissions-allow=Agent"}
	s := p.start("MY_SECRET_KEY="+agentKey, "OTHER=yes")
	text := asks(t, s, "agent", map[string]any{"prompt": "Find it.", "model": "big"})
	work, _ := filepath.EvalSymlinks(p.work)
	want := "depth 1, secret none, allowed yes, in " + work + ", model big\nhas the task\nhas the server\n600\n[agent agent_"
	if !strings.HasPrefix(text, want) {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if text = asks(t, s, "agent", map[string]any{"prompt": "FAIL"}); !strings.HasPrefix(text, "AGENT_FAILED: other ended with exit 3: no credit. Its last text:\n") {
		t.Error(text)
	}
	text = asks(t, s, "agent", map[string]any{"prompt": "HANG", "run_in_background": true})
	job := replaytest.JobID.FindString(text)
	var child string
	replaytest.Until(t, "the agent has started a process", func() bool {
		b, err := os.ReadFile(pid)
		child = strings.TrimSpace(string(b))
		return err == nil && child != ""
	})
	asks(t, s, "job_stop", map[string]any{"job_id": job})
	replaytest.Until(t, "its process is gone", func() bool {
		b, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
	if left, err := os.ReadDir(filepath.Join(p.base, "codehand", "agents")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	// A server below another agent starts none.
	deep := newAgentProgram(t, p.flags...)
	if text := asks(t, deep.start("CODEHAND_AGENT_DEPTH=1"), "agent", map[string]any{"prompt": "x"}); !strings.HasPrefix(text, "TOOL_DISABLED: agent is not available: sub-agents may not start others here") {
		t.Error(text)
	}
	for _, flag := range []string{"--yolo", "--dangerously-skip-permissions"} {
		cmd := exec.Command(replaytest.Program(t), "stdio", p.work, "--agent-command-argv="+program+","+flag)
		cmd.Env = []string{"HOME=" + p.base, "PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), flag+" lets the agent act without asking anybody") {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
	}
}

// TestAgentCommandKilled: kill -9 of the server ends the command line of the other agent with its tree.
func TestAgentCommandKilled(t *testing.T) {
	t.Parallel()
	p := newAgentProgram(t)
	program, pid := filepath.Join(p.base, "other"), filepath.Join(p.base, "pid")
	replaytest.WriteFile(t, program, []byte(standIn))
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	p.flags = []string{"--agent-command-argv=" + program + ",{mcp_config},{model}," + pid, "--permissions-allow=Agent"}
	s := p.start()
	asks(t, s, "agent", map[string]any{"prompt": "HANG", "run_in_background": true})
	var child string
	replaytest.Until(t, "the agent has started a process", func() bool {
		b, err := os.ReadFile(pid)
		child = strings.TrimSpace(string(b))
		return err == nil && child != ""
	})
	if err := s.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range s.Lines {
	}
	_ = s.Cmd.Wait()
	replaytest.Until(t, "its process is gone", func() bool {
		b, err := os.ReadFile("/proc/" + child + "/stat")
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}
