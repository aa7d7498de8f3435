package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

const promptsChanged = "notifications/prompts/list_changed"

// A skillChange is a call, and whether the client must hear of other prompts after it.
type skillChange struct {
	tool, args string
	told       bool
}

// skillChanges are made one after the other in a workspace whose prompts were listed.
func skillChanges(work string) []skillChange {
	at := func(name string) string { return filepath.Join(work, filepath.FromSlash(name)) }
	skill := "---\nname: new\ndescription: %s\n---\nText.\n"
	write := func(path, text string) string {
		args, _ := json.Marshal(map[string]string{"file_path": path, "content": text})
		return string(args)
	}
	return []skillChange{
		{"write_file", write(at("a.txt"), "one\n"), false},
		{"write_file", write(at(".claude/skills/new/SKILL.md"), fmt.Sprintf(skill, "One.")), true},
		{"write_file", write(at(".claude/skills/new/more.md"), "one\n"), false},
		{"edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"One.","new_string":"Two."}`, at(".claude/skills/new/SKILL.md")), true},
		{"edit_file", fmt.Sprintf(`{"file_path":%q,"old_string":"Text.","new_string":"Other text."}`, at(".claude/skills/new/SKILL.md")), false},
		{"run_shell", `{"command":"echo hello"}`, false},
		{"run_shell", `{"command":"cd sub"}`, true},
		{"call_tool", `{"name":"run_shell","arguments":{"command":"cd .."}}`, true},
		{"call_tool", `{"name":"run_shell","arguments":{"command":"touch b.txt"}}`, false},
	}
}

// TestPromptsChanged: a client that has listed prompts hears of it, before the answer, when a call of its own gave it
// others; no other call tells anything, and a client that never listed is told nothing.
func TestPromptsChanged(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"sandbox.policy": "off", "permissions.mode": "acceptEdits", "permissions.allow": "Bash(*)", "permissions.unprotect": ".claude/**,.codehand/**"}
	wires := map[string]func(t *testing.T) (replaytest.KindWire, string){
		"stdio": func(t *testing.T) (replaytest.KindWire, string) {
			f := start(t, setup{settings: settings})
			return f.Wire, f.work
		},
		"http": func(t *testing.T) (replaytest.KindWire, string) {
			x := serveHTTP(t, siteSetup{settings: settings})
			return x.client("").Hello(), x.work
		},
		"stdio modern": func(t *testing.T) (replaytest.KindWire, string) {
			f := start(t, setup{settings: settings, modern: true})
			must(t, f.Send(listenLine(`"ear"`, `{"promptsListChanged":true}`)))
			if l := f.line(t); !strings.Contains(l, "acknowledged") {
				t.Fatal(l)
			}
			return f.Wire, f.work
		},
	}
	for name, open := range wires {
		for _, lists := range []bool{true, false} {
			t.Run(fmt.Sprint(name, lists), func(t *testing.T) {
				t.Parallel()
				w, work := open(t)
				replaytest.Lay(t, work, map[string]string{"sub/.claude/skills/below/SKILL.md": "---\nname: below\ndescription: Below.\n---\nText.\n"})
				if lists {
					w.Ask(t, "prompts/list", nil)
				}
				for _, c := range skillChanges(work) {
					notes, result := w.Ask(t, "tools/call", map[string]any{"name": c.tool, "arguments": json.RawMessage(c.args)})
					if strings.Contains(string(result), `"isError":true`) {
						t.Fatalf("%s %s: %s", c.tool, c.args, result)
					}
					if told := slices.Contains(notes, promptsChanged); told != (c.told && lists) {
						t.Errorf("%s %s: told %v, want %v", c.tool, c.args, notes, c.told && lists)
					}
				}
			})
		}
	}
}

// TestPromptsChangedForOne: over HTTP in the modern era a listen hears of the prompts of its own session alone.
func TestPromptsChangedForOne(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}, settings: map[string]string{"permissions.mode": "acceptEdits", "permissions.unprotect": ".claude/**"}})
	ears := map[string]*bufio.Scanner{}
	next := func(who string) string {
		t.Helper()
		for ears[who].Scan() {
			if data, ok := strings.CutPrefix(ears[who].Text(), "data: "); ok {
				return data
			}
		}
		t.Fatalf("%s: %v", who, ears[who].Err())
		return ""
	}
	for _, who := range []string{"alice", "bob"} {
		c := x.client(who)
		c.Modern = true
		r, err := http.DefaultClient.Do(c.Request(soon(t), http.MethodPost, c.URL, listenLine(`"`+who+`"`, `{"promptsListChanged":true}`)))
		must(t, err)
		defer r.Body.Close()
		ears[who] = bufio.NewScanner(r.Body)
		if ack := next(who); !strings.Contains(ack, "acknowledged") {
			t.Fatal(ack)
		}
	}
	for i, who := range []string{"alice", "bob", "alice"} {
		a := x.guest(t, who, true, nil)
		a.prompts()
		path := filepath.Join(x.data, "workspaces", who, ".claude", "skills", fmt.Sprintf("new%d", i), "SKILL.md")
		args, err := json.Marshal(map[string]string{"file_path": path, "content": "---\nname: x\ndescription: y\n---\nText.\n"})
		must(t, err)
		a.call("write_file", string(args))
		if got := next(who); !strings.Contains(got, promptsChanged) || !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":"`+who+`"`) {
			t.Errorf("%s heard %s", who, got)
		}
	}
	// No other client got a notice: the next message on bob's stream is of his own.
	bob := x.guest(t, "bob", true, nil)
	args, err := json.Marshal(map[string]string{"file_path": filepath.Join(x.data, "workspaces", "bob", ".claude", "skills", "last", "SKILL.md"), "content": "---\nname: last\ndescription: y\n---\nText.\n"})
	must(t, err)
	bob.call("write_file", string(args))
	if got := next("bob"); !strings.Contains(got, `"bob"`) || promptNames(bob.prompts()) != "commit instructions last new1" {
		t.Errorf("bob heard %s and has %s", got, promptNames(bob.prompts()))
	}
}

// tells makes a call that must work, or must be refused, and says whether the client heard of other prompts.
func tells(t *testing.T, w replaytest.KindWire, name, args string, meta map[string]any, works bool) bool {
	t.Helper()
	params := map[string]any{"name": name, "arguments": json.RawMessage(args)}
	if meta != nil {
		params["_meta"] = meta
	}
	notes, result := w.Ask(t, "tools/call", params)
	if strings.Contains(string(result), `"isError":true`) == works {
		t.Fatalf("%s %s: %s", name, args, result)
	}
	return slices.Contains(notes, promptsChanged)
}

// newSkill is the input of a call of write_file that makes a skill.
func newSkill(work, name string) string {
	args, _ := json.Marshal(map[string]string{"file_path": filepath.Join(work, ".claude", "skills", name, "SKILL.md"), "content": "---\ndescription: New.\n---\nText.\n"})
	return string(args)
}

// TestPromptsOfAnotherSession: a client that names a session in each call but in no list never heard that its prompts had
// changed; nor did one whose session another client uses, too, since that one was told.
func TestPromptsOfAnotherSession(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"sandbox.policy": "off", "permissions.mode": "acceptEdits", "permissions.allow": "Bash(*)", "permissions.unprotect": ".claude/**"}
	meta := map[string]any{"codehand/session": "handle-one"}
	f, x := start(t, setup{settings: settings}), serveHTTP(t, siteSetup{settings: settings})
	for name, w := range map[string]replaytest.KindWire{"stdio": f.Wire, "http": x.client("").Hello()} {
		work := map[string]string{"stdio": f.work, "http": x.work}[name]
		replaytest.Lay(t, work, map[string]string{"sub/.claude/skills/below/SKILL.md": "Text.\n"})
		w.Ask(t, "prompts/list", nil)
		for i, want := range []bool{true, false} {
			if told := tells(t, w, "write_file", newSkill(work, "named"), meta, true); told != want {
				t.Errorf("%s, call %d: told %v", name, i, told)
			}
		}
		if tells(t, w, "run_shell", `{"command":"cd sub"}`, meta, true) {
			t.Errorf("%s: told of the prompts of a session whose prompts it was not shown", name)
		}
	}
	var both []replaytest.KindWire
	for range 2 {
		c := x.client("")
		c.URL += "/s/handle-two"
		c.Hello()
		c.Ask(t, "prompts/list", nil)
		both = append(both, c)
	}
	if !tells(t, both[1], "write_file", newSkill(x.work, "shared"), nil, true) || !tells(t, both[0], "run_shell", `{"command":"touch b.txt"}`, nil, true) {
		t.Error("of two clients of one session one was not told")
	}
	if tells(t, both[0], "run_shell", `{"command":"touch b.txt"}`, nil, true) {
		t.Error("it was told twice")
	}
}

// TestPromptsAfterCommands: a command that was refused, or that is proved to change nothing, made the server look through
// all skills before it answered; one that a skill ran did not.
func TestPromptsAfterCommands(t *testing.T) {
	t.Parallel()
	team := t.TempDir()
	replaytest.Lay(t, team, map[string]string{"make/SKILL.md": "---\ndescription: Make.\n---\n!`sh make.sh`\n"})
	f := start(t, setup{settings: map[string]string{
		"sandbox.policy": "off", "permissions.mode": "acceptEdits", "permissions.allow": "Bash(*)", "permissions.deny": "Bash(rm *)",
		"permissions.unprotect": ".claude/**", "skills.dirs": team, "skills.allow_shell": "true",
	}})
	f.Ask(t, "prompts/list", nil)
	replaytest.Lay(t, f.work, map[string]string{
		"make.sh":                        "mkdir -p .claude/skills/made && echo x > .claude/skills/made/SKILL.md\n",
		".claude/skills/behind/SKILL.md": "---\ndescription: Behind the server's back.\n---\nText.\n",
	})
	for _, c := range []struct {
		tool, args  string
		works, told bool
	}{
		{"run_shell", `{"command":"rm nothing"}`, false, false},
		{"run_shell", `{"command":"ls -l"}`, true, false},
		{"run_shell", `{"command":"touch b.txt"}`, true, true},
		{"skill", `{"skill":"make"}`, true, true},
		{"skill", `{"skill":"make"}`, true, false},
	} {
		if told := tells(t, f.Wire, c.tool, c.args, nil, c.works); told != c.told {
			t.Errorf("%s %s: told %v", c.tool, c.args, told)
		}
	}
}
