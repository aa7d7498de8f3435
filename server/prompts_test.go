package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/server/replaytest"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// A skilled is a guest in a workspace with skills.
type skilled struct {
	guest
	work string
}

// skilledGuests are a client of each transport and era.
func skilledGuests(t *testing.T, settings map[string]string, files map[string]string) map[string]skilled {
	t.Helper()
	all := map[string]skilled{}
	settings = maps.Clone(settings)
	if settings == nil {
		settings = map[string]string{}
	}
	settings["sandbox.policy"], settings["permissions.allow"], settings["permissions.mode"] = "off", "Bash", "acceptEdits"
	for name, modern := range map[string]bool{"stdio legacy": false, "stdio modern": true} {
		f := start(t, setup{modern: modern, settings: settings})
		replaytest.Lay(t, f.work, files)
		all[name] = skilled{guest{t, modern, func(method string, params map[string]any) replaytest.Reply {
			t.Helper()
			r, err := f.Request(method, params)
			must(t, err)
			return r
		}}, f.work}
	}
	for name, modern := range map[string]bool{"http legacy": false, "http modern": true} {
		x := serveHTTP(t, siteSetup{settings: settings})
		replaytest.Lay(t, x.work, files)
		all[name] = skilled{x.guest(t, "", modern, nil), x.work}
	}
	return all
}

// prompts returns prompts/list.
func (a guest) prompts() []mcp.Prompt {
	a.t.Helper()
	var list struct {
		Prompts    []mcp.Prompt
		NextCursor string
	}
	r := a.ask("prompts/list", nil)
	if err := json.Unmarshal(r.Result, &list); err != nil || r.Error != nil || list.NextCursor != "" {
		a.t.Fatalf("prompts/list: %v %+v %s", err, r.Error, r.Result)
	}
	return list.Prompts
}

func promptNames(list []mcp.Prompt) string {
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// prompt returns the text of a prompt.
func (a guest) prompt(name string, arguments map[string]any) string {
	a.t.Helper()
	params := map[string]any{"name": name}
	if arguments != nil {
		params["arguments"] = arguments
	}
	r := a.ask("prompts/get", params)
	var got struct {
		Description string
		Messages    []struct {
			Role    string
			Content struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal(r.Result, &got); err != nil || r.Error != nil || len(got.Messages) != 1 || got.Messages[0].Role != "user" || got.Messages[0].Content.Type != "text" {
		a.t.Fatalf("prompts/get %s: %v %+v %s", name, err, r.Error, r.Result)
	}
	return got.Messages[0].Content.Text
}

// refused checks that a request is refused as one with wrong parameters.
func (a guest) refused(method string, params map[string]any, want string) {
	a.t.Helper()
	if r := a.ask(method, params); r.Error == nil || r.Error.Code != mcp.INVALID_PARAMS || !strings.Contains(r.Error.Message, want) || r.Result != nil {
		a.t.Errorf("%s %v: %+v %.200s, want -32602 and %q", method, params, r.Error, r.Result, want)
	}
}

// TestPrompts walks through the prompts of a session, on each transport and in each era: they are the skills that a
// person may run, and the text of one is rendered without running anything.
func TestPrompts(t *testing.T) {
	t.Parallel()
	for name, a := range skilledGuests(t, map[string]string{"skills.allow-shell": "true"}, replaytest.Skills) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			list := a.prompts()
			if got := promptNames(list); got != "apart commit deploy greet instructions look odd other-name shelly" {
				t.Errorf("prompts: %s", got)
			}
			for _, p := range list {
				if p.Name == "instructions" && len(p.Arguments) == 0 {
					continue
				}
				if len(p.Arguments) != 1 || p.Arguments[0].Name != "arguments" || p.Arguments[0].Required || p.Arguments[0].Description == "" {
					t.Errorf("%+v", p)
				}
				if p.Name == "greet" && (p.Description != "Says hello." || p.Arguments[0].Description != "[who]") {
					t.Errorf("%+v", p)
				}
			}
			dir := filepath.Join(a.work, ".claude", "skills", "deploy")
			for _, c := range []struct{ name, given, want string }{
				{"greet", "Ann & Bob", "Say hello to Ann & Bob."},
				{"deploy", "production minor", "Skill deploy. Base directory: " + dir + ". Files: a b/notes?.txt, logo.png, scripts/go.sh\nDeploy to production as minor from " + dir + "."},
				{"look", "'a b' c", "Look at c and a b."},
				{"apart", "", "Think."},
				{"odd", "", "Odd, but a text."},
				{"shelly", "", "It is [shell command execution disabled by policy] now.\n[shell command execution disabled by policy]\nEnd."},
			} {
				var arguments map[string]any
				if c.given != "" {
					arguments = map[string]any{"arguments": c.given}
				}
				if got := a.prompt(c.name, arguments); strings.TrimSpace(got) != c.want {
					t.Errorf("%s %q:\n%s\nwant\n%s", c.name, c.given, got, c.want)
				}
			}
			if _, err := os.Stat(filepath.Join(a.work, "ran")); err == nil {
				t.Error("a prompt ran a command")
			}
			for _, gone := range []string{"quiet", "broken", "binary", "nothing", "Greet", "../greet", "greet\x00"} {
				a.refused("prompts/get", map[string]any{"name": gone}, "")
			}
			a.refused("prompts/get", map[string]any{"name": "nothing"}, `unknown prompt "nothing"`)
			a.refused("prompts/get", map[string]any{"name": "greet", "arguments": map[string]any{"arguments": strings.Repeat("ä", 10_001)}}, "10001 characters")
			a.refused("prompts/get", map[string]any{"name": "greet", "arguments": map[string]any{"who": "Ann"}}, `has no argument "who"`)

			// A skill is found as it is now, and a prompt that was listed may be gone.
			replaytest.Lay(t, a.work, map[string]string{".claude/skills/greet/SKILL.md": "---\nname: greet\ndescription: Says something longer.\n---\nSay goodbye.\n"})
			must(t, os.RemoveAll(filepath.Join(a.work, ".claude", "commands")))
			if got := a.prompt("greet", map[string]any{"arguments": "to me"}); got != "Say goodbye.\n\nARGUMENTS: to me\n" {
				t.Errorf("%q", got)
			}
			a.refused("prompts/get", map[string]any{"name": "look"}, `unknown prompt "look"`)
		})
	}
}

// TestPromptsShowTheHidden: the text of a skill's prompt had characters that the person who ran it could not see, such as
// tags and bidirectional controls, and that the tool skill shows.
func TestPromptsShowTheHidden(t *testing.T) {
	t.Parallel()
	hidden := map[string]string{".claude/skills/x/SKILL.md": "---\r\nname: x\r\ndescription: D.\r\n---\r\nOne \u202etwo\r\n\U000e0041\x1b[31m Zoe\u0308 $ARGUMENTS\r\n"}
	for name, a := range skilledGuests(t, nil, hidden) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			const want = "One \\u202etwo\n\\u{e0041}\\x1b[31m Zoe\u0308 a\nb\n"
			if got := a.prompt("x", map[string]any{"arguments": "a\r\nb"}); got != want {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestCommitPrompt: everybody has a prompt to commit with, unless a skill takes its place.
func TestCommitPrompt(t *testing.T) {
	t.Parallel()
	for name, a := range skilledGuests(t, nil, nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.t = t
			if got := promptNames(a.prompts()); got != "commit instructions" {
				t.Errorf("prompts: %s", got)
			}
			text := a.prompt("commit", map[string]any{"arguments": "mention issue 12"})
			for _, want := range []string{"in parallel", "git status", "git diff --cached", "git log -5", "<<'", "git's configuration", "--no-verify", "amend", "push", "Add no co-author.", "The user says: mention issue 12"} {
				if !strings.Contains(text, want) {
					t.Errorf("commit lacks %q:\n%s", want, text)
				}
			}
			replaytest.Lay(t, a.work, map[string]string{".codehand/skills/commit/SKILL.md": "---\nname: commit\ndescription: Our own way.\n---\nCommit as we do.\n"})
			if list := a.prompts(); len(list) != 2 || list[0].Description != "Our own way." {
				t.Errorf("%+v", list)
			}
			if text := a.prompt("commit", nil); strings.TrimSpace(text) != "Commit as we do." {
				t.Errorf("%q", text)
			}
		})
	}
	t.Run("co-author", func(t *testing.T) {
		t.Parallel()
		f := start(t, setup{settings: map[string]string{"git.co_author": "Ann Other <ann@example.org>"}})
		r, err := f.Request("prompts/get", map[string]any{"name": "commit"})
		must(t, err)
		if text := string(r.Result); !strings.Contains(text, "Co-authored-by: Ann Other \\u003cann@example.org\\u003e") && !strings.Contains(text, "Co-authored-by: Ann Other <ann@example.org>") || strings.Contains(text, "Add no co-author") {
			t.Errorf("%s", text)
		}
	})
}

// TestSkillsAreTheCallersOwn: principals and sessions see the skills of their own workspace and of what they touched,
// as prompts, as resources, in completions and by the extension; who may not read sees none.
func TestSkillsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	for name, modern := range map[string]bool{"legacy": false, "modern": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := serveHTTP(t, siteSetup{
				settings: map[string]string{"permissions.mode": "acceptEdits"}, principals: []string{"alice", "bob", "nobody"},
				values: map[string]auth.Values{"nobody": {Scopes: []string{}}},
			})
			hers, his := filepath.Join(x.data, "workspaces", "alice"), filepath.Join(x.data, "workspaces", "bob")
			replaytest.Lay(t, hers, map[string]string{
				".claude/skills/hers/SKILL.md":     "---\nname: hers\ndescription: Of alice.\n---\nHers.\n",
				"sub/.claude/skills/deep/SKILL.md": "---\nname: deep\ndescription: Below.\n---\nDeep.\n", "sub/a.txt": "one\n",
			})
			replaytest.Lay(t, his, map[string]string{".claude/skills/his/SKILL.md": "---\nname: his\ndescription: Of bob.\n---\nHis.\n"})
			sees := func(who string, a guest, want ...string) {
				t.Helper()
				if got := promptNames(a.prompts()); got != strings.Join(slices.Sorted(slices.Values(append([]string{"commit", "instructions"}, want...))), " ") {
					t.Errorf("%s: prompts %s, want %v", who, got, want)
				}
				var uris []string
				for _, r := range a.list() {
					if strings.HasPrefix(r.URI, "skill://") {
						uris = append(uris, r.URI)
					}
				}
				var listed struct{ Skills []struct{ URI string } }
				must(t, json.Unmarshal(a.ask("skills/list", nil).Result, &listed))
				for i, n := range []string{"hers", "deep", "his"} {
					uri := "skill://" + n + "/SKILL.md"
					has := slices.Contains(want, n)
					if slices.Contains(uris, uri) != has || slices.ContainsFunc(listed.Skills, func(s struct{ URI string }) bool { return s.URI == uri }) != has {
						t.Errorf("%s: %d %s: resources %v, skills %v", who, i, n, uris, listed)
					}
					if !has {
						a.gone(uri)
						a.refused("skills/get", map[string]any{"uri": uri}, "not found")
						a.refused("prompts/get", map[string]any{"name": n}, "unknown prompt")
					}
				}
				r := a.ask("completion/complete", map[string]any{"ref": map[string]any{"type": "ref/resource", "uri": "skill://{name}/{+path}"}, "argument": map[string]any{"name": "name", "value": ""}})
				for _, n := range []string{"hers", "deep", "his"} {
					if strings.Contains(string(r.Result), `"`+n+`"`) != slices.Contains(want, n) {
						t.Errorf("%s completes %s", who, r.Result)
					}
				}
			}
			one := x.guest(t, "alice", modern, map[string]any{"codehand/session": "handle-one"})
			two := x.guest(t, "alice", modern, map[string]any{"codehand/session": "handle-two"})
			one.call("read_file", fmt.Sprintf(`{"file_path":%q}`, filepath.Join(hers, "sub", "a.txt")))
			sees("alice who read below", one, "deep", "hers")
			sees("alice elsewhere", two, "hers")
			sees("bob", x.guest(t, "bob", modern, map[string]any{"codehand/session": "handle-one"}), "his")
			sees("nobody", x.guest(t, "nobody", modern, nil))

			one.call("todo_write", `{"todos":[{"content":"Hers","status":"pending"}]}`)
			if text, mime := one.read("codehand://todos"); !strings.Contains(text, `"content": "Hers"`) || mime != "application/json" {
				t.Errorf("todos: %s %s", mime, text)
			}
			one.call("task_create", `{"subject":"Hers too","description":"x"}`)
			if text, _ := one.read("codehand://tasks"); !strings.Contains(text, `"subject": "Hers too"`) {
				t.Errorf("tasks: %s", text)
			}
			for _, uri := range []string{"codehand://todos", "codehand://tasks"} {
				if !slices.ContainsFunc(one.list(), func(r mcp.Resource) bool { return r.URI == uri }) {
					t.Errorf("%s is not listed", uri)
				}
				if text, _ := two.read(uri); text != "[]" {
					t.Errorf("another session: %s is %s", uri, text)
				}
				if slices.ContainsFunc(two.list(), func(r mcp.Resource) bool { return r.URI == uri }) {
					t.Errorf("another session lists %s", uri)
				}
			}
		})
	}
}

// TestListingHoldsNothing: who only asks what there is, without a handle, gets no session by discovery, one that all of his
// principal share by listing, and holds it no longer than his request.
func TestListingHoldsNothing(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob"}})
	var live atomic.Int64
	build := x.server.sessions.Build
	x.server.sessions.Build = func(key session.Key, at *tenants.Tenant) (*session.State, func(), error) {
		live.Add(1)
		st, end, err := build(key, at)
		return st, func() { live.Add(-1); end() }, err
	}
	for range 20 {
		for _, who := range []string{"alice", "bob"} {
			x.guest(t, who, true, nil).ask("server/discover", nil)
		}
	}
	if n := live.Load(); n != 0 {
		t.Errorf("after discovery: %d sessions", n)
	}
	for range 20 {
		for _, who := range []string{"alice", "bob"} {
			a := x.guest(t, who, true, nil)
			for _, method := range []string{"prompts/list", "resources/list", "skills/list", "tools/list"} {
				if r := a.ask(method, nil); r.Error != nil {
					t.Fatalf("%s: %+v", method, r.Error)
				}
			}
			a.gone("skill://nothing/SKILL.md")
			a.refused("skills/get", map[string]any{"uri": "x"}, "not found")
			a.refused("prompts/get", map[string]any{"name": "nothing"}, "unknown prompt")
		}
	}
	if n := live.Load(); n != 2 {
		t.Errorf("after listing: %d sessions", n)
	}
	if x.server.openCalls() {
		t.Error("a session was not given back")
	}
}
