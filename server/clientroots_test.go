package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/config"
	"codehand/server/replaytest"
	"codehand/tools/hooks"
	"codehand/tools/permission"
)

// withRoots is what a client declares that has roots.
const withRoots = `{"roots":{"listChanged":true}}`

// A rooted client has roots. It counts how often it is asked for them.
type rooted struct {
	*replaytest.ElicitClient
	answer string // a result, or an error with "!" before it; "": it never answers
	asked  int
}

func rootedOn(t *testing.T, transport string, more ...string) (c *rooted, work string) {
	t.Helper()
	return rootedFor(t, transport, 0, more...)
}

// rootedFor is rootedOn with the time that the client has to name its roots.
func rootedFor(t *testing.T, transport string, patience time.Duration, more ...string) (c *rooted, work string) {
	t.Helper()
	settings := map[string]string{"permissions.mode": "acceptEdits"}
	for _, line := range more {
		key, value, _ := strings.Cut(line, "=")
		settings[key] = value
	}
	if transport == "stdio" {
		f := start(t, setup{settings: settings, silent: true, roots: patience})
		replaytest.PlantRoots(t, f.work)
		return &rooted{ElicitClient: replaytest.OnPipe(t, f.Wire, false, withRoots)}, f.work
	}
	x := serveHTTP(t, siteSetup{settings: settings, roots: patience})
	replaytest.PlantRoots(t, x.work)
	if transport == "sse" {
		e, _ := onSSE(t, x, "", withRoots)
		return &rooted{ElicitClient: e}, x.work
	}
	return &rooted{ElicitClient: onHTTP(t, x, "", false, withRoots)}, x.work
}

// uses calls a tool and says what came of it: its text, with the code of a refusal first.
func (c *rooted) uses(name, args string) string {
	c.T.Helper()
	next := c.Request(c.Line(name, args, ""))
	for {
		msg := next()
		if msg == nil {
			c.T.Fatal("the connection has ended")
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result *struct {
				Content []struct{ Text string }
			}
		}
		must(c.T, json.Unmarshal(msg, &m))
		switch {
		case m.Method == "roots/list":
			c.asked++
			c.reply(m.ID)
		case m.Method == "" && m.Result != nil && m.Result.Content != nil:
			return m.Result.Content[0].Text
		case m.Method == "" && m.Result == nil:
			c.T.Fatalf("got %s", msg)
		}
	}
}

func (c *rooted) reply(id json.RawMessage) {
	switch fault, isError := strings.CutPrefix(c.answer, "!"); {
	case isError:
		c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, id, fault))
	case c.answer != "":
		c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, c.answer))
	}
}

func (c *rooted) says(answer string) {
	c.T.Helper()
	c.answer = answer
	c.Send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
}

// A client's roots only take away: what it names is all that its calls reach, and what it names outside reaches nothing.
func TestClientRoots(t *testing.T) {
	t.Parallel()
	outside := leaktest.Dir(t)
	must(t, os.WriteFile(filepath.Join(outside, "f.txt"), []byte("outside\n"), 0o600))
	for _, transport := range []string{"stdio", "http", "sse"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c, work := rootedOn(t, transport)
			in := func(dir string) string { return replaytest.AsJSON(t, "file_path", filepath.Join(work, dir, "f.txt")) }
			out := replaytest.AsJSON(t, "file_path", filepath.Join(outside, "f.txt"))
			check := func(step, args string, reached bool) {
				t.Helper()
				text := c.uses("read_file", args)
				if got := strings.Contains(text, "content"); got != reached || !reached && !strings.HasPrefix(text, "OUTSIDE_ROOTS") {
					t.Errorf("%s: %s: %q", step, args, text)
				}
			}
			c.answer = replaytest.RootsAnswer("file://" + work + "/a")
			check("one", in("a"), true)
			check("one", in("b"), false)
			check("one", replaytest.AsJSON(t, "file_path", "f.txt"), true) // the cwd is the one that is left
			if text := c.uses("write_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "b/new"), "content", "x")); !strings.HasPrefix(text, "OUTSIDE_ROOTS") && !strings.HasPrefix(text, "ASK_UNAVAILABLE") {
				t.Errorf("a write: %s", text)
			}
			if text := c.uses("grep_search", replaytest.AsJSON(t, "pattern", "content", "path", work)); !strings.HasPrefix(text, "OUTSIDE_ROOTS") {
				t.Errorf("a search: %s", text)
			}
			if c.asked != 1 {
				t.Errorf("asked %d times", c.asked)
			}
			c.says(replaytest.RootsAnswer("file://" + work + "/b"))
			check("the other", in("a"), false)
			check("the other", in("b"), true)
			if c.asked != 2 {
				t.Errorf("asked %d times", c.asked)
			}
			c.says(replaytest.RootsAnswer("file://"+outside, "file:///", "file://"+work+"-evil"))
			check("all and more", in("a"), true)
			check("all and more", out, false)
			c.says(replaytest.RootsAnswer("file://" + outside))
			check("nothing of ours", in("b"), false)
			check("nothing of ours", out, false)
			if text := c.uses("read_file", in("b")); !strings.Contains(text, "do not overlap") || !strings.Contains(text, outside) || !strings.Contains(text, work) {
				t.Errorf("nothing of ours: %s", text)
			}
			for tool, args := range map[string]string{"grep_search": replaytest.AsJSON(t, "pattern", "content"), "list_files": "{}", "run_shell": replaytest.AsJSON(t, "command", "cat b/f.txt")} {
				if text := c.uses(tool, args); strings.Contains(text, "content\n") || strings.Contains(text, "f.txt") && tool == "list_files" {
					t.Errorf("%s: %s", tool, text)
				}
			}
			c.says(replaytest.RootsAnswer())
			check("none after that", in("b"), false)
			c.says(replaytest.RootsAnswer("file:" + work + "/a")) // as Java spells a file
			check("one slash", in("a"), true)
			check("one slash", in("b"), false)
			c.says(replaytest.RootsAnswer("FILE://localhost" + work + "/b"))
			check("upper case", in("a"), false)
			check("upper case", in("b"), true)
			c.says(replaytest.RootsAnswer(work + "/a"))
			check("a plain path", in("a"), true)
			check("a plain path", in("b"), false)
			c.says(replaytest.RootsAnswer("https://example.org/", "file:a", "a", "vscode-remote://x"+work))
			check("no files", in("b"), false)
			c.says(replaytest.RootsAnswer("file://" + work + "/a"))
			check("one again", in("b"), false)
			c.says(`!{"code":-32601,"message":"no such method"}`)
			check("an error leaves it", in("b"), false)
			c.says(`{"roots":"many"}`)
			check("nonsense leaves it", in("b"), false)
			c.says(replaytest.RootsAnswer())
			check("none at all", in("a"), true)
			check("none at all", in("b"), false)
		})
	}
}

// Of a client that has no folder open all roots are used, until it names some.
func TestClientRootsNoneOpen(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http", "sse"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c, work := rootedOn(t, transport)
			args := replaytest.AsJSON(t, "file_path", filepath.Join(work, "b/f.txt"))
			c.answer = replaytest.RootsAnswer()
			if text := c.uses("read_file", args); !strings.Contains(text, "content") {
				t.Fatal(text)
			}
			c.says(replaytest.RootsAnswer("file://" + work + "/a"))
			if text := c.uses("read_file", args); !strings.HasPrefix(text, "OUTSIDE_ROOTS") {
				t.Error(text)
			}
			c.says(replaytest.RootsAnswer())
			if text := c.uses("read_file", args); !strings.HasPrefix(text, "OUTSIDE_ROOTS") || c.asked != 3 {
				t.Errorf("asked %d times: %s", c.asked, text)
			}
		})
	}
}

// A link outside the roots that leads into one is followed for the client that started the process, as an editor may spell
// the folder by one, and for no stranger.
func TestClientRootsAlias(t *testing.T) {
	t.Parallel()
	for transport, want := range map[string]string{"stdio": "content", "http": "OUTSIDE_ROOTS", "sse": "OUTSIDE_ROOTS"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c, work := rootedOn(t, transport)
			alias := filepath.Join(t.TempDir(), "alias")
			must(t, os.Symlink(work, alias))
			c.answer = replaytest.RootsAnswer("file://" + alias + "/a")
			if text := c.uses("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "a/f.txt"))); !strings.Contains(text, want) {
				t.Error(text)
			}
			if text := c.uses("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "b/f.txt"))); !strings.HasPrefix(text, "OUTSIDE_ROOTS") {
				t.Error(text)
			}
		})
	}
}

// A client that declares roots and never answers waits once for its own answer, and reaches what is configured.
func TestClientRootsSilence(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http", "sse"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			c, work := rootedFor(t, transport, 100*time.Millisecond)
			for range 3 {
				if text := c.uses("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "b/f.txt"))); !strings.Contains(text, "content") {
					t.Fatal(text)
				}
			}
			if c.asked > 1 {
				t.Errorf("asked %d times", c.asked)
			}
		})
	}
}

// A rule that forbids is not lost with the root that it was written for.
func TestClientRootsKeepRules(t *testing.T) {
	t.Parallel()
	c, work := rootedOn(t, "stdio", "permissions.deny=Read(/a/f.txt)")
	c.answer = replaytest.RootsAnswer("file://" + work + "/a")
	if text := c.uses("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "a/f.txt"))); !strings.HasPrefix(text, "PERMISSION_DENIED") {
		t.Error(text)
	}
}

// `/x` of a person's rule is the workspace: the server's root, and the part of it that the person opened in the client.
// One that allows holds from the server's roots alone, since a client must not choose what needs no approval.
func TestClientRootsAreWorkspaces(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"stdio", "http"} {
		c, work := rootedOn(t, transport, "permissions.deny=Read(/f.txt),Read(/a/secret)", "permissions.mode=dontAsk",
			"permissions.allow=Edit(/made.txt),Edit(/a/fine.txt)")
		c.answer = replaytest.RootsAnswer("file://" + work + "/a")
		for name, want := range map[string]string{"f.txt": "PERMISSION_DENIED: Permission denied: read_file: rule Read(/f.txt)", "secret": "PERMISSION_DENIED: Permission denied: read_file: rule Read(/a/secret)"} {
			if text := c.uses("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "a", name))); !strings.HasPrefix(text, want) {
				t.Errorf("%s: read %s: got %s, want %s", transport, name, text, want)
			}
		}
		for name, want := range map[string]string{"made.txt": "PERMISSION_DENIED", "fine.txt": "Created"} {
			text := c.uses("write_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "a", name), "content", "x"))
			if !strings.HasPrefix(text, want) {
				t.Errorf("%s: write %s: got %s, want %s", transport, name, text, want)
			}
		}
	}
}

// The same holds of the condition of a hook: what it guards in the workspace stays guarded, and nothing else is.
func TestClientRootsKeepConditions(t *testing.T) {
	t.Parallel()
	blocks := func(rule string) config.Hook {
		return config.Hook{Event: hooks.PreToolUse, If: permission.Rule{Text: rule}, Command: replaytest.HookScript(t, "exit 2"), Origin: rule}
	}
	x := serveHTTP(t, siteSetup{hooks: []config.Hook{blocks("Read(/a/f.txt)"), blocks("Read(/b/f.txt)"), blocks("Read(/new.txt)")}})
	replaytest.PlantRoots(t, x.work)
	for _, name := range []string{"a/new.txt", "a/other.txt"} {
		must(t, os.WriteFile(filepath.Join(x.work, name), []byte("content\n"), 0o600))
	}
	c := &rooted{ElicitClient: onHTTP(t, x, "", false, withRoots)}
	c.answer = replaytest.RootsAnswer("file://" + x.work + "/a")
	for name, blocked := range map[string]bool{"a/f.txt": true, "a/new.txt": true, "a/other.txt": false} {
		text := c.uses("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(x.work, name)))
		if strings.HasPrefix(text, "HOOK_BLOCKED") != blocked {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Modern clients are asked nothing, and what a legacy client of the same connection said is not meant for them.
func TestClientRootsModern(t *testing.T) {
	t.Parallel()
	c, work := rootedOn(t, "stdio")
	c.answer = replaytest.RootsAnswer("file://" + work + "/a")
	args := replaytest.AsJSON(t, "file_path", filepath.Join(work, "b/f.txt"))
	if text := c.uses("read_file", args); !strings.HasPrefix(text, "OUTSIDE_ROOTS") {
		t.Fatal(text)
	}
	c.Modern, c.Caps = true, withRoots
	if text := c.uses("read_file", args); !strings.Contains(text, "content") {
		t.Error(text)
	}
}

// After a restart a session over HTTP has the roots that its client named before.
func TestClientRootsRestart(t *testing.T) {
	t.Parallel()
	first := serveHTTP(t, siteSetup{principals: []string{"alice"}})
	work := first.work
	replaytest.PlantRoots(t, work)
	h := first.client("alice")
	c := &rooted{ElicitClient: replaytest.OverHTTP(t, h, false, withRoots), answer: replaytest.RootsAnswer("file://" + work + "/a")}
	args := replaytest.AsJSON(t, "file_path", filepath.Join(work, "b/f.txt"))
	if text := c.uses("read_file", args); !strings.HasPrefix(text, "OUTSIDE_ROOTS") {
		t.Fatal(text)
	}
	must(t, first.stop())
	second := serveHTTP(t, siteSetup{work: work, principals: []string{"alice"}, data: first.data, tokens: first.tokens})
	h.URL = second.url + "/mcp"
	if text := c.uses("read_file", args); !strings.HasPrefix(text, "OUTSIDE_ROOTS") || c.asked != 1 {
		t.Errorf("asked %d times: %s", c.asked, text)
	}
}
