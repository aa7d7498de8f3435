package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A peerCall is a call of a peer's tool; it counts as the model would write it.
type peerCall struct {
	tool string
	args map[string]any
}

// A costPeer is a server that the task is done with beside ours.
type costPeer struct {
	name, module string
	args         func(work string) []string
	// calls are those by which a call of ours is made; nil: no tool of the peer comes near
	calls func(w *peerWork, tool string, in map[string]any) []peerCall
}

// A peerWork is the workspace in which a peer does the task.
type peerWork struct {
	dir    string
	before map[string]string // of files that several edits changed, to take them back by hand
}

func (w *peerWork) at(in map[string]any, key string) string {
	path, _ := in[key].(string)
	return filepath.Join(w.dir, path)
}

func (w *peerWork) holds(path, text string) int {
	b, _ := os.ReadFile(path)
	return strings.Count(string(b), text)
}

// below are the Go files below a path, for a peer that cannot search in files and reads them.
func (w *peerWork) below(path string) (files []string) {
	_ = filepath.WalkDir(path, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".go") {
			files = append(files, p)
		}
		return nil
	})
	return files
}

// An ourEdit is one of a multi_edit, or an edit_file.
type ourEdit struct{ path, from, to string }

func (w *peerWork) edits(in map[string]any) (all []ourEdit) {
	list, _ := in["edits"].([]any)
	if list == nil {
		list = []any{in}
	}
	for _, x := range list {
		e, _ := x.(map[string]any)
		path := w.at(in, "file_path")
		if _, own := e["file_path"]; own {
			path = w.at(e, "file_path")
		}
		from, _ := e["old_string"].(string)
		to, _ := e["new_string"].(string)
		all = append(all, ourEdit{path, from, to})
		if _, known := w.before[path]; !known && in["edits"] != nil {
			b, _ := os.ReadFile(path)
			w.before[path] = string(b)
		}
	}
	return all
}

// rewritten are the files that the edits of the task changed together, by a call each that writes what they held.
// rewrite: the peer wants to be told that it replaces a file.
func (w *peerWork) rewritten(tool string, rewrite bool) (calls []peerCall) {
	for path, text := range w.before {
		now, _ := os.ReadFile(path)
		args := map[string]any{"path": path, "content": text}
		if rewrite {
			args["mode"] = "rewrite"
		}
		calls = append(calls, peerCall{tool, args})
		w.before[path] = string(now) // the next undo is the redo
	}
	return calls
}

func filesystemCalls(w *peerWork, tool string, in map[string]any) []peerCall {
	switch tool {
	case "read_file":
		args := map[string]any{"path": w.at(in, "file_path")}
		if n, ok := in["limit"]; ok {
			args["head"] = n
		}
		return []peerCall{{"read_text_file", args}}
	case "write_file":
		return []peerCall{{"write_file", map[string]any{"path": w.at(in, "file_path"), "content": in["content"]}}}
	case "list_files":
		return []peerCall{{"search_files", map[string]any{"path": w.dir, "pattern": in["pattern"]}}}
	case "grep_search":
		if path := w.at(in, "path"); strings.HasSuffix(path, ".go") {
			return []peerCall{{"read_text_file", map[string]any{"path": path}}}
		}
		return []peerCall{{"read_multiple_files", map[string]any{"paths": w.below(w.at(in, "path"))}}}
	case "edit_file", "multi_edit":
		byFile, order := map[string][]any{}, []string(nil)
		for _, e := range w.edits(in) {
			n := 1
			if in["replace_all"] == true {
				n = max(1, w.holds(e.path, e.from))
			}
			if byFile[e.path] == nil {
				order = append(order, e.path)
			}
			for range n {
				byFile[e.path] = append(byFile[e.path], map[string]any{"oldText": e.from, "newText": e.to})
			}
		}
		var calls []peerCall
		for _, path := range order {
			calls = append(calls, peerCall{"edit_file", map[string]any{"path": path, "edits": byFile[path]}})
		}
		return calls
	case "undo_change":
		return w.rewritten("write_file", false)
	}
	return nil
}

func commanderCalls(w *peerWork, tool string, in map[string]any) []peerCall {
	switch tool {
	case "read_file":
		args := map[string]any{"path": w.at(in, "file_path")}
		if n, ok := in["limit"]; ok {
			args["offset"], args["length"] = 0, n
		}
		return []peerCall{{"read_file", args}}
	case "write_file":
		return []peerCall{{"write_file", map[string]any{"path": w.at(in, "file_path"), "content": in["content"], "mode": "rewrite"}}}
	case "list_files":
		return []peerCall{{"start_search", map[string]any{"path": w.dir, "pattern": strings.TrimPrefix(in["pattern"].(string), "internal/"),
			"searchType": "files"}}}
	case "grep_search":
		return []peerCall{{"start_search", map[string]any{"path": w.at(in, "path"), "pattern": in["pattern"], "searchType": "content"}}}
	case "run_shell":
		return []peerCall{{"start_process", map[string]any{"command": "cd " + w.dir + " && " + in["command"].(string), "timeout_ms": 20000}}}
	case "edit_file", "multi_edit":
		var calls []peerCall
		for _, e := range w.edits(in) {
			args := map[string]any{"file_path": e.path, "old_string": e.from, "new_string": e.to}
			if in["replace_all"] == true {
				args["expected_replacements"] = max(1, w.holds(e.path, e.from))
			}
			calls = append(calls, peerCall{"edit_block", args})
		}
		return calls
	case "undo_change":
		return w.rewritten("write_file", true)
	}
	return nil
}

func costPeers() []costPeer {
	return []costPeer{
		{"filesystem", "@modelcontextprotocol/server-filesystem", func(work string) []string { return []string{work} }, filesystemCalls},
		{"desktop-commander", "@wonderwhy-er/desktop-commander", func(string) []string { return []string{"--no-onboarding"} }, commanderCalls},
	}
}

// A taskStep is a call of the task with what it costs with ours, or a text that is appended to a file.
type taskStep struct {
	tool, file, text string
	in               map[string]any
	cost             int // characters of call and answer
	refused          bool
}

// taskOf reads the task.
func taskOf(t *testing.T) (files map[string]string, steps []taskStep) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join(replaytest.Root(t), "testdata", "bench", "task", "task.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "in/"); ok {
			files[name] = string(f.Data)
		}
		if f.Name != "session" {
			continue
		}
		for l := range strings.Lines(strings.ReplaceAll(string(f.Data), "$WORK", "/home/you/project")) {
			switch {
			case strings.HasPrefix(l, "$ append "):
				name, text, _ := strings.Cut(strings.TrimPrefix(l, "$ append "), " ")
				steps = append(steps, taskStep{file: name, text: text})
				continue
			case strings.HasPrefix(l, "$ "):
				continue
			case strings.HasPrefix(l, "> "):
				tool, args, _ := strings.Cut(strings.TrimSpace(l[2:]), " ")
				s := taskStep{tool: tool}
				if err := json.Unmarshal([]byte(args), &s.in); err != nil {
					t.Fatal(err)
				}
				steps = append(steps, s)
			}
			if n := len(steps) - 1; n >= 0 {
				steps[n].cost += utf8.RuneCountInString(l)
				steps[n].refused = steps[n].refused || strings.HasPrefix(l, "! ")
			}
		}
	}
	return files, steps
}

// moreResults is by what desktop-commander says that a search goes on.
var moreResults = regexp.MustCompile(`(?i)session:? (search_\S+)`)

// TestTaskBesidePeers does the task of TestTaskCost with two other servers, each call by their nearest tool, and counts as
// TestTaskCost does: characters of calls and answers, and of the list, at four a token. What a peer has no tool for is
// left out on both sides. .ci/bench runs it; the table is its log.
func TestTaskBesidePeers(t *testing.T) {
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("CODEHAND_LONG=1 does the task with other servers")
	}
	node := filepath.Join(replaytest.Root(t), ".ci/conformance/node_modules/node/bin/node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			t.Skip("no Node: .ci/bench installs it")
		}
	}
	modules := filepath.Join(replaytest.Root(t), "testdata/bench/peers/node_modules")
	for _, peer := range costPeers() {
		t.Run(peer.name, func(t *testing.T) {
			main, err := mainOf(filepath.Join(modules, peer.module))
			if err != nil {
				t.Skipf("%v: .ci/bench installs it", err)
			}
			doTask(t, peer, func(work string) *exec.Cmd { return exec.Command(node, append([]string{main}, peer.args(work)...)...) })
		})
	}
}

// mainOf is the program of a module.
func mainOf(module string) (string, error) {
	b, err := os.ReadFile(filepath.Join(module, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct{ Bin any }
	if err := json.Unmarshal(b, &p); err != nil {
		return "", err
	}
	if all, ok := p.Bin.(map[string]any); ok {
		for _, name := range []string{"mcp-server-filesystem", "desktop-commander"} {
			if at, ok := all[name].(string); ok {
				return filepath.Join(module, at), nil
			}
		}
	}
	at, _ := p.Bin.(string)
	return filepath.Join(module, at), nil
}

func doTask(t *testing.T, peer costPeer, start func(work string) *exec.Cmd) {
	files, steps := taskOf(t)
	w := &peerWork{dir: leaktest.Dir(t), before: map[string]string{}}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(w.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		replaytest.WriteFile(t, filepath.Join(w.dir, name), []byte(text))
	}
	cmd := start(w.dir)
	cmd.Dir = w.dir
	cmd.Env = []string{"HOME=" + leaktest.Dir(t), "PATH=" + os.Getenv("PATH")}
	p := replaytest.Speak(t, cmd, "task", false)
	t.Cleanup(func() { // not all end with their input
		_ = cmd.Process.Kill()
		for range p.Lines {
		}
		_ = cmd.Wait()
	})
	ours, theirs, done, lacking, failed := 0, 0, 0, 0, 0
	var last *taskStep
	for i := range steps {
		s := &steps[i]
		if s.tool == "" {
			old, _ := os.ReadFile(filepath.Join(w.dir, s.file))
			replaytest.WriteFile(t, filepath.Join(w.dir, s.file), []byte(string(old)+s.text))
			continue
		}
		again := last != nil && last.refused && last.tool == s.tool && fmt.Sprint(last.in) == fmt.Sprint(s.in)
		last = s
		calls := peer.calls(w, s.tool, s.in)
		if calls == nil {
			lacking++
			continue
		}
		ours += s.cost
		done++
		if again { // the peer did not refuse the first
			continue
		}
		cost := 0
		for _, c := range calls {
			text, bad := askPeer(t, p, c)
			cost += callCost(w.dir, c, text)
			if bad {
				failed++
			}
			if m := moreResults.FindStringSubmatch(text); m != nil && peer.name == "desktop-commander" {
				more := peerCall{"get_more_search_results", map[string]any{"sessionId": m[1]}}
				text, _ := askPeer(t, p, more)
				for try := 0; try < 60 && strings.Contains(text, "IN PROGRESS"); try++ { // it waits itself
					text, _ = askPeer(t, p, more)
				}
				cost += callCost(w.dir, more, text)
			}
		}
		theirs += cost
		t.Logf("%-13s %6d %6d", s.tool, s.cost/4, cost/4)
	}
	t.Logf("%s: %d of %d calls, %d tokens, ours %d; its list %d; %d answers were errors; no tool for %d calls", peer.name, done,
		done+lacking, theirs/4, ours/4, peerList(t, p)/4, failed, lacking)
	if ours > theirs {
		t.Errorf("ours costs %d tokens, %s %d", ours/4, peer.name, theirs/4)
	}
}

// callCost is what a call and its answer cost, written as a session file writes them.
func callCost(work string, c peerCall, answer string) int {
	args, _ := json.Marshal(c.args)
	text := "> " + c.tool + " " + string(args) + "\n" + strings.TrimSuffix(answer, "\n") + "\n\n"
	return utf8.RuneCountInString(strings.ReplaceAll(text, work, "/home/you/project"))
}

func askPeer(t *testing.T, p *replaytest.Spawned, c peerCall) (text string, bad bool) {
	t.Helper()
	r, err := p.Request("tools/call", map[string]any{"name": c.tool, "arguments": c.args})
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if r.Error != nil {
		return r.Error.Message, true
	}
	if err := json.Unmarshal(r.Result, &result); err != nil {
		t.Fatal(err)
	}
	for _, c := range result.Content {
		text += c.Text
	}
	return text, result.IsError
}

// peerList is how many characters a peer's list has: names, descriptions and schemas.
func peerList(t *testing.T, p *replaytest.Spawned) (n int) {
	t.Helper()
	r, err := p.Request("tools/list", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
	if err := json.Unmarshal(r.Result, &list); err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Tools {
		n += len(x.Name) + len(x.Description) + len(x.InputSchema)
	}
	return n
}
