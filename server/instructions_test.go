package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/replaytest"
	"codehand/server/resources"
	"codehand/tools"
	"codehand/tools/catalog"
	"codehand/tools/tool"
)

// What clients take of instructions, in bytes, and what of it names of skills may fill.
const (
	maxInstructions = 2_000
	maxSkillNames   = 600
)

// instructed is what a new client is told.
func instructed(t *testing.T, f *fixture) string {
	t.Helper()
	method := "initialize"
	params := map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": f.Client, "version": "1"}}
	if f.Modern {
		method, params = "server/discover", nil
	}
	r, err := f.Request(method, params)
	must(t, err)
	var hello struct{ Instructions string }
	must(t, json.Unmarshal(r.Result, &hello))
	return hello.Instructions
}

// TestInstructions: every client is told the same bytes for the same configuration, tools and skills, in at most 2,000, of
// which the first sentences matter most; and no tool is named that it does not have.
func TestInstructions(t *testing.T) {
	t.Parallel()
	names := toolNames()
	for _, c := range []struct {
		name     string
		client   string
		settings map[string]string
		has      []string
		lacks    []string
	}{
		{name: "usual", client: "x", has: []string{"read_file", "run_readonly", "tool_search and called by their own names or with call_tool", "todo_write", "the tool skill loads them: greet, quiet."}, lacks: []string{"ask_user_question", "deploy"}},
		{name: "sees all", client: "claude-code", has: []string{"the tool skill loads them"}, lacks: []string{"tool_search", "todo_write"}},
		{name: "off", client: "x", settings: map[string]string{"tools.deferral": "off"}, lacks: []string{"tool_search", "todo_write"}},
		{name: "no shell", client: "x", settings: map[string]string{"shell.enabled": "false"}, has: []string{"read, write, edit and search in"}, lacks: []string{"run_shell", "run_readonly", "job_output", "run_in_background", "shell"}},
		{name: "denied", client: "x", settings: map[string]string{"permissions.deny": "tool_search,skill,edit_file"}, has: []string{"read, write, search and run in"}, lacks: []string{"tool_search", "greet", "edit_file"}},
		{name: "read only", client: "x", settings: map[string]string{"tools.profile": "readonly"}, has: []string{"read and search in"}, lacks: []string{"edit_file", "write_file", "run_shell,"}},
		{name: "simple", client: "x", settings: map[string]string{"tools.profile": "simple"}, has: []string{"read, edit and run in", "Read a file before you edit it"}, lacks: []string{"grep_search", "tool_search"}},
	} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, modern), func(t *testing.T) {
				t.Parallel()
				f := start(t, setup{client: c.client, modern: modern, settings: c.settings, silent: true})
				files := map[string]string{}
				for _, name := range []string{"greet", "deploy", "quiet", "broken"} {
					files[".claude/skills/"+name+"/SKILL.md"] = replaytest.Skills[".claude/skills/"+name+"/SKILL.md"]
				}
				replaytest.Lay(t, f.work, files)
				text := instructed(t, f)
				if again := instructed(t, f); again != text {
					t.Errorf("told twice:\n%s\n%s", text, again)
				}
				if len(text) > maxInstructions || !strings.HasPrefix(text, "codehand gives you the hands of a coding agent: ") || !strings.HasSuffix(text, ".") {
					t.Errorf("%d bytes: %s", len(text), text)
				}
				for _, want := range c.has {
					if !strings.Contains(text, want) {
						t.Errorf("lacks %q:\n%s", want, text)
					}
				}
				for _, never := range append(c.lacks, "Says hello", "Is for models") {
					if strings.Contains(strings.ReplaceAll(text, f.work, "$WORK"), never) {
						t.Errorf("has %q:\n%s", never, text)
					}
				}
				have := f.server.local.Offers(false).Catalog
				for _, word := range regexp.MustCompile(`[a-z]+(_[a-z]+)+`).FindAllString(text, -1) {
					named := slices.Contains(names, word)
					if named && !slices.ContainsFunc(have, func(e catalog.Entry) bool { return e.Name == word }) {
						t.Errorf("%s is named, and not there:\n%s", word, text)
					}
				}
			})
		}
	}
}

// TestInstructionsNameFewSkills: however many skills there are, their names take 600 bytes, and the rest are counted.
func TestInstructionsNameFewSkills(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true})
	files := map[string]string{}
	for i := range 300 {
		name := fmt.Sprintf("skill-%03d-%s", i, strings.Repeat("x", i%40))
		files[".claude/skills/"+name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: IGNORE-ALL.\n---\nText.\n"
	}
	replaytest.Lay(t, f.work, files)
	text := instructed(t, f)
	list := regexp.MustCompile(`loads them: (.*) and (\d+) more\.$`).FindStringSubmatch(text)
	if list == nil || len(text) > maxInstructions || len(list[0]) > maxSkillNames+len("loads them: .") {
		t.Fatalf("%d bytes: %s", len(text), text)
	}
	if n := len(strings.Split(list[1], ", ")); fmt.Sprint(300-n) != list[2] || strings.Contains(text, "IGNORE") {
		t.Errorf("%d are named and %s more: %s", n, list[2], text)
	}
}

// TestInstructionsOfManyTools: where there were many further tools, their names took all of the room, and no word said that
// there are skills.
func TestInstructionsOfManyTools(t *testing.T) {
	t.Parallel()
	var further []tool.Tool
	for i := range 150 {
		x := fixtureTool(fmt.Sprintf("further_%03d", i), reader, func(context.Context, tool.Env, word) (tool.Result, error) { return tool.Result{}, nil })
		x.Spec.Deferred = true
		further = append(further, x)
	}
	f := start(t, setup{silent: true, make: allAnd(further...)})
	replaytest.Lay(t, f.work, map[string]string{".claude/skills/only/SKILL.md": "Text.\n"})
	text := instructed(t, f)
	if len(text) > maxInstructions || len(text) < maxInstructions-100 || !regexp.MustCompile(`further_000, .* and \d+ more\. Skills .* loads them: only\.$`).MatchString(text) {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestInstructionsKnowNoStranger: a principal is told of the skills of its own workspace alone, and of none without the
// right to read.
func TestInstructionsKnowNoStranger(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{
		principals: []string{"alice", "bob", "nobody"},
		values:     map[string]auth.Values{"nobody": {Scopes: []string{}}},
	})
	for _, who := range []string{"alice", "bob", "nobody"} {
		replaytest.Lay(t, filepath.Join(x.data, "workspaces", who), map[string]string{".claude/skills/of-" + who + "/SKILL.md": "---\nname: of-" + who + "\ndescription: x\n---\nText.\n"})
	}
	for _, who := range []string{"alice", "bob", "nobody"} {
		a := x.guest(t, who, true, nil)
		text := string(a.ask("server/discover", nil).Result)
		for _, other := range []string{"alice", "bob", "nobody"} {
			if strings.Contains(text, "of-"+other) != (who == other && who != "nobody") {
				t.Errorf("%s is told of %s's skills: %s", who, other, text)
			}
		}
	}
}

// guideText is the long form of the instructions.
func guideText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("resources", "guide.md"))
	must(t, err)
	return string(text)
}

// TestGuide: the long form of the instructions names no tool, parameter or code that does not exist, and can be read in one
// answer.
func TestGuide(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "tools", "tool", "codes.go"))
	must(t, err)
	words := map[string]bool{"files_with_matches": true, "content": true}
	for _, t := range tools.All(tools.Engines{}) {
		words[t.Spec.Name] = true
		var schema struct{ Properties map[string]any }
		_ = json.Unmarshal(t.Schema, &schema)
		for p := range schema.Properties {
			words[p] = true
		}
	}
	guide := guideText(t)
	quoted := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(guide, -1)
	if len(quoted) < 40 {
		t.Fatalf("%d words in quotes", len(quoted))
	}
	for _, m := range quoted {
		word := m[1]
		switch {
		case regexp.MustCompile(`^[A-Z_]{4,}$`).MatchString(word):
			if !strings.Contains(string(source), `"`+word+`"`) {
				t.Errorf("there is no code %s", word)
			}
		case strings.HasPrefix(word, "codehand://"):
			if !resources.Constant(word) && word != "codehand://results/" {
				t.Errorf("there is no resource %s", word)
			}
		case regexp.MustCompile(`^[a-z]+(_[a-z]+)+$`).MatchString(word):
			if !words[word] {
				t.Errorf("there is no tool or parameter %s", word)
			}
		}
	}
	for topic, rule := range map[string]string{
		"Batching":        "Send calls that do not depend on each other together, in one message.",
		"Reading first":   "Read a file with `read_file` before you change it",
		"Dedicated tools": "Find files with `list_files`, text with `grep_search`, and look into files with `read_file`.",
		"Safety":          "Never undo, move, overwrite or delete work of the user that you were not asked to touch.",
		"The shell":       "Run what takes minutes or never ends (servers, watchers, long builds) in the background",
		"Edits":           "leave everything else as it is.",
		"Commits":         "Commit only when you are asked to.",
		"Sub-agents":      "its prompt says what to do",
		"Progress":        "`todo_write` keeps a list of steps",
		"Results":         "its first line names the file that holds the whole",
		"Errors":          "Do that, rather than the same call again.",
	} {
		_, text, found := strings.Cut(guide, "\n## "+topic+"\n")
		if text, _, _ = strings.Cut(text, "\n## "); !found || !strings.Contains(text, rule) {
			t.Errorf("the guide does not say under %s: %s", topic, rule)
		}
	}
	f := start(t, setup{})
	r, err := f.Request("resources/read", map[string]any{"uri": "codehand://guide/tools"})
	must(t, err)
	var got struct {
		Contents []struct{ MimeType, Text string }
	}
	must(t, json.Unmarshal(r.Result, &got))
	if len(got.Contents) != 1 || got.Contents[0].Text != guide || got.Contents[0].MimeType != "text/markdown" {
		t.Errorf("%.300s", r.Result)
	}
}

// toolNames are those of all tools.
func toolNames() []string {
	var names []string
	for _, t := range tools.All(tools.Engines{}) {
		names = append(names, t.Spec.Name)
	}
	return names
}

// TestGuideIsTrue: the guide told models that an edit of a file which was not read can be repeated at once (it is refused
// again), and that one edit of several may look for what another one put in (all are refused).
func TestGuideIsTrue(t *testing.T) {
	t.Parallel()
	guide := guideText(t)
	f := start(t, setup{settings: map[string]string{"permissions.mode": "acceptEdits"}})
	path := filepath.Join(f.work, "a.txt")
	must(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
	a := guest{t, false, func(method string, params map[string]any) replaytest.Reply {
		r, err := f.Request(method, params)
		must(t, err)
		return r
	}}
	edit := fmt.Sprintf(`{"file_path":%q,"old_string":"one","new_string":"1"}`, path)
	for i, c := range []struct{ says, tool, args, want string }{
		{"changing an unread file is refused", "edit_file", edit, "FILE_NOT_READ"},
		{"`FILE_NOT_READ`: read the file, then repeat the call.", "edit_file", edit, "FILE_NOT_READ"},
		{"Read a file with `read_file` before you change it", "read_file", fmt.Sprintf(`{"file_path":%q}`, path), "two"},
		{"An edit of text that an earlier edit inserted is refused", "multi_edit", fmt.Sprintf(
			`{"file_path":%q,"edits":[{"old_string":"one","new_string":"three"},{"old_string":"three","new_string":"four"}]}`, path), "CASCADE"},
		{"the same call can be repeated at once", "edit_file", edit, "FILE_CHANGED"},
		{"If it changed since you read it, the refusal shows the difference", "edit_file", edit, "Edited "},
		{"What a tool wrote counts as read", "edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"two","new_string":"2"}`, path), "Edited "},
	} {
		if c.want == "FILE_CHANGED" {
			must(t, os.WriteFile(path, []byte("one\ntwo\nthree\n"), 0o600))
		}
		r := a.ask("tools/call", map[string]any{"name": c.tool, "arguments": json.RawMessage(c.args)})
		if !strings.Contains(guide, c.says) || !strings.Contains(string(r.Result), c.want) {
			t.Errorf("%d %q: %s, want %s", i, c.says, r.Result, c.want)
		}
	}
}
