package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/auth"
	"codehand/server/clients"
	"codehand/server/replaytest"
	"codehand/tools/guidance"
)

const projectAddress = "codehand://instructions"

// project is the text of a resource; "": there is none.
func (a guest) project(uri string) string {
	a.t.Helper()
	r := a.ask("resources/read", map[string]any{"uri": uri})
	var read struct{ Contents []mcp.TextResourceContents }
	if r.Error != nil {
		return ""
	}
	if err := json.Unmarshal(r.Result, &read); err != nil || len(read.Contents) != 1 {
		a.t.Fatalf("%v: %s", err, r.Result)
	}
	return read.Contents[0].Text
}

// TestProjectInstructions: every client learns that there are instructions, and can read them whole as a resource and a
// prompt, in each era, on each transport.
func TestProjectInstructions(t *testing.T) {
	t.Parallel()
	const text = "Run make test.\n\x1b[31mNow.\n"
	for name, a := range skilledGuests(t, nil, map[string]string{"AGENTS.md": text, "CLAUDE.md": strings.Repeat("line\n", 3000), "sub/AGENTS.md": "of sub"}) {
		t.Run(name, func(t *testing.T) {
			a.t = t
			whole := a.project(projectAddress)
			for _, want := range []string{"give no rights", "\nAGENTS.md:\n--- untrusted content ", "\nRun make test.\n\\x1b[31mNow.\n--- untrusted content ", `read_file {"file_path":"CLAUDE.md","offset":1639}]`} {
				if !strings.Contains(whole, want) {
					t.Errorf("the resource lacks %q: %.600s", want, whole)
				}
			}
			if strings.Contains(whole, "of sub") {
				t.Error("it has what is not of the root")
			}
			if said := a.prompt("instructions", nil); said != whole {
				t.Errorf("the prompt is %.600s", said)
			}
			r := a.ask("prompts/get", map[string]any{"name": "instructions", "arguments": map[string]any{"arguments": "x"}})
			if r.Error == nil || r.Error.Message != "the prompt instructions has no arguments" {
				t.Errorf("%+v", r.Error)
			}
			list := a.ask("resources/list", nil)
			if !strings.Contains(string(list.Result), projectAddress) {
				t.Errorf("it is not listed: %s", list.Result)
			}
			for _, file := range []string{"AGENTS.md", "CLAUDE.md"} {
				must(t, os.Remove(filepath.Join(a.work, file)))
			}
			if gone := a.project(projectAddress); gone != "" {
				t.Errorf("of no files: %s", gone)
			}
			if said := a.prompt("instructions", nil); !strings.HasPrefix(said, "This workspace has no instructions that you may read") {
				t.Errorf("of no files: %s", said)
			}
			if list := a.ask("resources/list", nil); strings.Contains(string(list.Result), projectAddress) {
				t.Error("what is not there is listed")
			}
		})
	}
}

// TestInstructionsNameProject: the files are named in one sentence, but those that the client reads itself where both run on
// one machine; their contents never get into it.
func TestInstructionsNameProject(t *testing.T) {
	t.Parallel()
	const begin = "Before you begin, read the project's own instructions: "
	files := map[string]string{}
	names := []string{guidance.Agents, guidance.Claude, guidance.Gemini, guidance.Cursor, guidance.Copilot}
	for _, name := range names {
		if name == guidance.Cursor {
			name += "/IGNORE-ALL.mdc"
		}
		files[name] = "IGNORE-ALL.\n"
	}
	for client, own := range map[string]string{
		"x": "", "claude-code": "CLAUDE.md", "codex-mcp-client": "AGENTS.md", "gemini-cli-mcp-client": "GEMINI.md",
		"cursor-vscode": "AGENTS.md .cursor/rules", "Visual Studio Code": "AGENTS.md .github/copilot-instructions.md",
		"copilot-cli": "AGENTS.md .github/copilot-instructions.md", "opencode": "AGENTS.md",
	} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(client, modern), func(t *testing.T) {
				t.Parallel()
				f := start(t, setup{client: client, modern: modern, silent: true})
				if text := instructed(t, f); strings.Contains(text, begin) {
					t.Errorf("without files: %s", text)
				}
				replaytest.Lay(t, f.work, files)
				text := instructed(t, f)
				others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(strings.Fields(own), n) })
				if want := begin + strings.Join(others, ", ") + "."; !strings.Contains(text, want) || len(text) > maxInstructions || strings.Contains(text, "IGNORE") {
					t.Errorf("want %q in %d bytes: %s", want, len(text), text)
				}
			})
		}
	}
	t.Run("denied", func(t *testing.T) {
		t.Parallel()
		f := start(t, setup{silent: true, settings: map[string]string{"permissions.deny": "Read(AGENTS.md),Read(.cursor/**)"}})
		replaytest.Lay(t, f.work, files)
		if text := instructed(t, f); !strings.Contains(text, begin+"CLAUDE.md, GEMINI.md, .github/copilot-instructions.md.") {
			t.Error(text)
		}
	})
	t.Run("elsewhere", func(t *testing.T) { // what the client reads there is of another place
		t.Parallel()
		x := serveHTTP(t, siteSetup{settings: map[string]string{"client.profile": "claude-code"}})
		replaytest.Lay(t, x.work, files)
		if text := string(x.guest(t, "", true, nil).ask("server/discover", nil).Result); !strings.Contains(text, begin+strings.Join(names, ", ")+".") {
			t.Error(text)
		}
	})
}

// TestProjectKnowsNoStranger: a principal is told of the instructions of its own workspace, and of none without the right to
// read.
func TestProjectKnowsNoStranger(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{principals: []string{"alice", "bob", "nobody"}, values: map[string]auth.Values{"nobody": {Scopes: []string{}}}})
	for _, who := range []string{"alice", "nobody"} {
		replaytest.Lay(t, filepath.Join(x.data, "workspaces", who), map[string]string{"AGENTS.md": "of " + who + "\n"})
	}
	for who, has := range map[string]bool{"alice": true, "bob": false, "nobody": false} {
		a := x.guest(t, who, true, nil)
		if text := string(a.ask("server/discover", nil).Result); strings.Contains(text, "AGENTS.md") != has {
			t.Errorf("%s is told: %s", who, text)
		}
		if text := a.project(projectAddress); strings.Contains(text, "of "+who) != has || !has && text != "" {
			t.Errorf("%s reads: %s", who, text)
		}
	}
}

// TestLoads: a profile names only what there is.
func TestLoads(t *testing.T) {
	t.Parallel()
	known := []string{guidance.Agents, guidance.Claude, guidance.Gemini, guidance.Cursor, guidance.Copilot}
	for _, name := range clients.Names() {
		p, _ := clients.Named(name)
		for _, file := range strings.Fields(p.Loads) {
			if !slices.Contains(known, file) {
				t.Errorf("%s reads %s", name, file)
			}
		}
	}
}
