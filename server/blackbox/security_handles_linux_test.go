//go:build linux

package blackbox

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// want are the codes that a path may get in a way, "-" for none.
func (o *outsider) want(w way, c pathCase, path string) []string {
	kind := c.kind
	if kind == ofHome {
		if kind = outsideRoots; o.http {
			kind = inputInvalid
		}
	}
	switch {
	case w.kind == namesThing:
		return []string{w.codes, inputInvalid}
	case w.kind == matchesPath:
		return []string{"-", "PATTERN_INVALID", outsideRoots, denied, inputInvalid}
	case w.kind == runsCommand && slices.Contains([]string{outsideRoots, denied, ofState}, kind) && path != "/dev/null":
		return []string{"ASK_UNAVAILABLE", denied, outsideRoots, "NOT_READ_ONLY", "NOT_REGULAR", "COMMAND_FAILED", resetCwd}
	case w.kind == runsCommand:
		return []string{"-", "ASK_UNAVAILABLE", denied, "NOT_READ_ONLY", "NOT_REGULAR", "COMMAND_FAILED", inputInvalid}
	case w.param == "notebook_path" && !strings.HasSuffix(path, ".ipynb"):
		return []string{inputInvalid}
	case kind == inside:
		return strings.Fields(w.codes)
	case w.kind == inJournal && kind == endless:
		return strings.Fields(w.codes)
	case w.kind == inJournal && slices.Contains([]string{outsideRoots, denied, ofState}, kind):
		return append(strings.Fields(w.codes), outsideRoots, denied)
	case kind == ofState && w.kind == writesPath:
		return []string{denied}
	case kind == ofState:
		return []string{outsideRoots}
	}
	return []string{kind}
}

// writesFiles says that a way is for files that are changed, so that a path which only a directory can have is refused.
func writesFiles(w way) bool {
	return w.kind == writesPath || w.tool == "undo_change" || w.tool == "multi_edit" // a dry run, too
}

// namesDir says that the end of a path leaves it no file's.
func namesDir(path string) bool {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "%2F", "/"), "%2f", "/")
	path = strings.ReplaceAll(strings.ReplaceAll(path, "%2E", "."), "%2e", ".")
	return strings.HasSuffix(path, "/") || strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..")
}

// tries sends every path through every way of some kinds, and returns how many calls that took.
func (o *outsider) tries(kinds ...wayKind) (calls int) {
	o.Helper()
	before := o.facts()
	for _, c := range leaktest.Some(18, pathCases()) {
		for _, w := range ways() {
			path := o.fill(c.path)
			if w.param == "notebook_path" {
				path = notebookOf(path)
			}
			args := w.args(path)
			if args == nil || !slices.Contains(kinds, w.kind) {
				continue
			}
			calls++
			code, text := o.call(w.tool, args)
			want := o.want(w, c, path)
			if code == "IS_DIRECTORY" && writesFiles(w) && namesDir(path) {
				continue // by its text alone, wherever that is
			}
			if !slices.Contains(want, cmp.Or(code, "-")) {
				o.Errorf("%s %s %.200q: %.300q, want %q", w.tool, w.param, path, text, want)
			}
		}
	}
	if after := o.facts(); after != before {
		o.Errorf("outside the root is now:\n%s\nwas:\n%s", after, before)
	}
	return calls
}

// resources sends every path as a resource, and the links out of skills, and returns how many requests that took.
func (o *outsider) resources() (requests int) {
	o.Helper()
	before := o.facts()
	uris := []string{"skill://good/link.md", "skill://evil/SKILL.md", "skill://evil-dir/SKILL.md", "skill://good/../../../in.txt", "skill://good/%2e%2e/%2e%2e/%2e%2e/in.txt"}
	for _, c := range pathCases() {
		path := o.fill(c.path)
		uris = append(uris, path, "codehand://results/"+path, "codehand://jobs/"+path+"/output", "codehand://changes/"+path, "skill://"+path, "skill://good/"+path, "skill://good/"+url.PathEscape(path))
	}
	for _, uri := range uris {
		if strings.HasPrefix(uri, "skill://") && slices.Contains([]string{"", ".", "/"}, strings.TrimPrefix(uri, "skill://good/")) {
			continue // the skill itself
		}
		if code, text := o.say("resources/read", map[string]any{"uri": uri}); code == "" {
			o.Errorf("there is a resource %.200q: %.300s", uri, text)
		}
		requests++
	}
	for _, skill := range []string{"evil", "evil-dir"} {
		if code, text := o.call("skill", map[string]any{"skill": skill}); code == "" {
			o.Errorf("a skill that is a link out is loaded: %.300s", text)
		}
	}
	if after := o.facts(); after != before {
		o.Errorf("outside the root is now:\n%s\nwas:\n%s", after, before)
	}
	return requests + 2
}

// works shows that the tools do what they are asked where they may, and that a way through which nothing was refused is not
// dead.
func (o *outsider) works() {
	o.Helper()
	kept := keptAt(o.T, o.did("run_shell", "command", "seq 1 50000"))
	for _, c := range []struct {
		want, tool string
		args       []any
	}{
		{"here inside", "read_file", []any{"file_path", "in.txt"}},
		{"here deep", "read_file", []any{"file_path", "file://" + o.work + "/dir/../dir/deep.txt"}},
		{"good text", "call_tool", []any{"name", "read_file", "arguments", map[string]any{"file_path": o.work + "/.claude/skills/good/SKILL.md"}}},
		{"40000", "read_file", []any{"file_path", kept, "offset", 40_000, "limit", 1}},
		{"deep.txt", "list_files", []any{"pattern", "*", "path", "dir"}},
		{"here deep", "grep_search", []any{"pattern", "here", "path", "dir", "output_mode", "content"}},
		{"here inside", "run_readonly", []any{"command", "cat in.txt"}},
		{"here deep", "run_shell", []any{"command", "cd dir && cat deep.txt"}},
		{o.work + "/dir", "run_shell", []any{"command", "pwd"}},
		{"", "run_shell", []any{"command", "cd '" + o.work + "'"}},
		{"The good text.", "skill", []any{"skill", "good"}},
		{"", "write_file", []any{"file_path", "made.txt", "content", "here new\n"}},
		{"", "edit_file", []any{"file_path", "made.txt", "old_string", "here", "new_string", "there"}},
		{"", "multi_edit", []any{"file_path", "made.txt", "edits", []any{map[string]any{"old_string": "there", "new_string": "everywhere"}}}},
		{"", "read_file", []any{"file_path", "in.ipynb"}},
		{"", "notebook_edit", []any{"notebook_path", "in.ipynb", "cell_id", "a", "new_source", "changed"}},
		{"multi_edit", "file_history", []any{"file_path", "made.txt"}},
		{"made.txt", "undo_change", []any{"file_path", "made.txt"}},
	} {
		if text := o.did(c.tool, c.args...); !strings.Contains(text, c.want) {
			o.Errorf("%s %v: %.300s, want %s", c.tool, c.args, text, c.want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(o.work, "made.txt")); err != nil || string(text) != "there new\n" {
		o.Errorf("the file that was made, edited and undone is %q, %v", text, err)
	}
	if code, text := o.call("write_file", map[string]any{"file_path": kept, "content": "x"}); code != denied {
		o.Errorf("a kept result is written: %.300s", text)
	}
	if code, text := o.say("resources/read", map[string]any{"uri": "skill://good/SKILL.md"}); code != "" {
		o.Errorf("the skill of the workspace: %s %.300s", code, text)
	}
}

// did calls a tool that must do what it is asked.
func (o *outsider) did(tool string, pairs ...any) string {
	o.Helper()
	args := map[string]any{}
	must(o, json.Unmarshal([]byte(replaytest.AsJSON(o.T, pairs...)), &args))
	code, text := o.call(tool, args)
	if code != "" && code != resetCwd {
		o.Fatalf("%s %v: %s %.300s", tool, pairs, code, text)
	}
	return text
}

// covers fails for a text in the schemas of the program's tools that is neither tried nor known to be no path.
func (o *outsider) covers() (tools int) {
	o.Helper()
	var list struct {
		Tools []struct {
			Name        string
			InputSchema map[string]any
		}
	}
	r := o.ask("tools/list", nil)
	must(o, json.Unmarshal(r.Result, &list))
	tried := map[string]bool{}
	for _, w := range ways() {
		tried[w.tool+"."+w.param] = true
	}
	spared := maps.Clone(noPaths)
	for _, x := range list.Tools {
		for _, name := range texts("", x.InputSchema) {
			name = x.Name + "." + name
			if _, known := noPaths[name]; !known && !tried[name] {
				o.Errorf("%s may be a path: try it in ways(), or say in noPaths why it is none", name)
			}
			delete(tried, name)
			delete(spared, name)
		}
	}
	for name := range tried {
		o.Errorf("no tool has %s", name)
	}
	for name := range spared {
		if !strings.HasPrefix(name, "ask_user_question.") { // listed for clients only that can ask
			o.Errorf("no tool has %s, which noPaths spares", name)
		}
	}
	return len(list.Tools)
}

// texts are the parts of a schema that may hold text, by name.
func texts(name string, schema map[string]any) (all []string) {
	if items, ok := schema["items"].(map[string]any); ok {
		return texts(name+"[]", items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for key, p := range properties {
		below := key
		if name != "" {
			below = name + "." + key
		}
		all = append(all, texts(below, p.(map[string]any))...)
	}
	switch kind, _ := schema["type"].(string); {
	case len(properties) > 0, name == "", kind == "integer", kind == "number", kind == "boolean":
		return all
	}
	return append(all, name)
}

// TestSEC01Handles: no path leads out of the root, through no tool. Rules let everything pass where files are used, so that
// nothing but the handles is in the way; commands have rules, since no sandbox is there. Patterns, ids and resources, which are
// the same over HTTP, are tried over stdio only.
func TestSEC01Handles(t *testing.T) {
	t.Parallel()
	report := func(o *outsider, n int) {
		o.Helper()
		tools := o.covers()
		o.works()
		o.Logf("%d paths, %d ways into %d tools: %d calls, 0 escapes", len(pathCases()), len(ways()), tools, n)
	}
	if n := len(pathCases()); n < 60 {
		t.Fatalf("%d paths are too few", n)
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		o, _, _ := outsiderOverStdio(t, freely)
		report(o, o.tries(readsPath, writesPath, inJournal, matchesPath, namesThing)+o.resources())
	})
	t.Run("commands", func(t *testing.T) {
		t.Parallel()
		o, _, _ := outsiderOverStdio(t, append([]string{"--sandbox-policy=off"}, strictly...))
		report(o, o.tries(runsCommand))
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		o := outsiderOverHTTP(t)
		report(o, o.tries(readsPath, writesPath, inJournal))
	})
}
