package settings

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestBreak(t *testing.T) {
	t.Parallel()
	const good = `{"a": 1}`
	for _, c := range []struct {
		name, path, before, after string
		want                      string // "": the change is fine
	}{
		{"a comma too many", ".claude/settings.json", good, "{\n  \"a\": 1,\n}", "3:1: invalid character '}' looking for beginning of object key string"},
		{"local settings", "/w/.claude/settings.local.json", good, "{", "1:2: unexpected end of JSON input"},
		{"no comments", ".claude/settings.json", good, "{} // x", "1:4: invalid character '/' after top-level value"},
		{"another file of it", ".claude/notes.json", good, "{", ""},
		{"another directory", "claude/settings.json", good, "{", ""},
		{"another ending", ".claude/settings.txt", good, "{", ""},
		{"a wrong type", ".claude/settings.json", good, `{"permissions":{"allow":["a",2]}}`, ".permissions.allow[1] must be a text, not a number"},
		{"a wrong type deep down", ".claude/settings.json", good, `{"hooks":{"Stop":[{"hooks":[{"command":[]}]}]}}`, ".hooks.Stop[0].hooks[0].command must be a text, not a list"},
		{"a whole of another type", ".claude/settings.json", good, `[]`, "the whole must be an object, not a list"},
		{"what nobody knows", ".claude/settings.json", good, `{"new":{"x":[1]},"permissions":{"new":2}}`, ""},
		{"null", ".claude/settings.json", good, `{"model":null,"env":{"A":"b"}}`, ""},
		{"a mark", ".claude/settings.json", good, "\ufeff{}", ""},
		{"empty", ".claude/settings.json", good, " \n", ""},
		{"broken before", ".claude/settings.json", "{", "{]", ""},
		{"of a wrong type before", ".claude/settings.json", `{"model":1}`, `{"model":2}`, ""},
		{"servers", ".mcp.json", `{}`, `{"mcpServers":{"a":{"command":"x","args":"y"}}}`, ".mcpServers.a.args must be a list, not a text"},
		{"servers by address", "/w/.MCP.json", `{}`, `{"mcpServers":{"a":{"type":"http","url":"http://x","headers":{"A":"b"}}}}`, ""},
		{"comments", ".vscode/settings.json", `{}`, "// one\n{ /* two \" */ \"a\": \"//\", // three\n}", ""},
		{"a comment without end", ".vscode/settings.json", `{}`, "{\n /* x }", "2:2: a comment begins here and does not end"},
		{"two commas", ".vscode/settings.json", `{}`, "[1,,]", "1:4: invalid character ',' looking for beginning of value"},
		{"nothing but a comma", ".vscode/settings.json", `{}`, "{,}", "1:2: invalid character ',' looking for beginning of object key string"},
		{"a list for settings", ".vscode/settings.json", `{}`, "[]", "the whole must be an object, not a list"},
		{"tasks", ".vscode/tasks.json", `{}`, `{"tasks":[1]}`, ".tasks[0] must be an object, not a number"},
		{"launch", ".vscode/launch.json", `{}`, `{"configurations":{}}`, ".configurations must be a list, not an object"},
		{"extensions", ".vscode/extensions.json", `{}`, `{"recommendations":["a",],}`, ""},
		{"servers of the editor", ".vscode/mcp.json", `{}`, `{"servers":{"a":1}}`, ".servers.a must be an object, not a number"},
		{"any other of its files", ".vscode/x.json", `{}`, `[true]`, ""},
		{"any other of its files, broken", ".vscode/x.json", `{}`, `[true`, "1:6: unexpected end of JSON input"},
		{"characters are counted", ".mcp.json", good, "{\"ä€\": x}", "1:8: invalid character 'x' looking for beginning of value"},
	} {
		var none *Checker
		err := none.Break([]byte(c.before), []byte(c.after), filepath.FromSlash(c.path))
		if got := said(err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestBreakOfANewFile(t *testing.T) {
	t.Parallel()
	if err := New(nil).Break(nil, []byte("{"), ".mcp.json"); err == nil {
		t.Error("a new file may be broken: whatever reads it worked without it")
	}
	if err := New(nil).Break([]byte(""), []byte("{"), ".mcp.json"); err == nil {
		t.Error("an empty file counts as broken")
	}
}

// A link may have any name: what counts is the name of the file, and the one that was given.
func TestBreakLooksAtEveryPath(t *testing.T) {
	t.Parallel()
	for _, paths := range [][]string{{"plain.txt", ".mcp.json"}, {".mcp.json", "plain.txt"}} {
		if New(nil).Break([]byte("{}"), []byte("{"), paths...) == nil {
			t.Errorf("%v: not found", paths)
		}
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	c := New(func(path string, content []byte) (bool, error) {
		if path != "/etc/own.toml" {
			return false, nil
		}
		if strings.Contains(string(content), "bad") {
			return true, errors.New("1:1: it is bad")
		}
		return true, nil
	})
	for _, x := range []struct{ path, before, after, want string }{
		{"/etc/own.toml", "a", "bad", "1:1: it is bad"},
		{"/etc/own.toml", "bad", "bad, too", ""},
		{"/etc/own.toml", "a", "b", ""},
		{"/etc/other.toml", "a", "bad", ""},
		{"/etc/.mcp.json", "{}", "bad", "1:1: invalid character 'b' looking for beginning of value"},
	} {
		if got := said(c.Break([]byte(x.before), []byte(x.after), x.path)); got != x.want {
			t.Errorf("%s, %q to %q: got %q, want %q", x.path, x.before, x.after, got, x.want)
		}
	}
}

// What is JSON stays what it says, and nothing moves.
func FuzzBlanked(f *testing.F) {
	for _, s := range []string{`{"a":[1,2]}`, "{ // x\n\"a\":1,}", `/* */ [1,]`, `{"a":"/*","b":"\\",}`, `[,]`, `"`, `//`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := blanked(text)
		if err != nil {
			if json.Valid(text) {
				t.Fatalf("%q is JSON: %v", text, err)
			}
			return
		}
		if len(out) != len(text) {
			t.Fatalf("%d bytes of %d", len(out), len(text))
		}
		if json.Valid(text) && string(out) != string(text) {
			t.Fatalf("JSON %q became %q", text, out)
		}
		for i := range out {
			if out[i] != text[i] && out[i] != ' ' {
				t.Fatalf("%q became %q", text, out)
			}
		}
		again, err := blanked(out)
		if err != nil || string(again) != string(out) && json.Valid(out) {
			t.Fatalf("%q became %q and then %q (%v)", text, out, again, err)
		}
	})
}
