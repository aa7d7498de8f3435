package install

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemovalAfterOthers: what others changed since the install stays, and our entry goes nevertheless.
func TestRemovalAfterOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, client, first, from, to, want string }{
		{"beside it", "cursor", "{\n  \"a\": 1\n}\n", `"a": 1`, `"a": 2`, "{\n  \"a\": 2\n}\n"},
		{"behind it", "cursor", "{\n  \"a\": 1\n}\n", "\n  }\n}\n", "\n  },\n  \"b\": 2\n}\n",
			"{\n  \"a\": 1,\n  \"b\": 2\n}\n"},
		{"in it", "cursor", "{\n  \"a\": 1\n}\n", `"env": {}`, `"env": {"X": "1"}`, "{\n  \"a\": 1\n}\n"},
		{"in a file that we made", "cursor", "", `"mcpServers": {`, "\"mcpServers\": {\n    \"x\": {},",
			"{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n"},
		{"a table of TOML", "codex", "a = 1\n", "tool_timeout_sec = 600", "tool_timeout_sec = 5\n\n[b]\nc = 1",
			"a = 1\n\n[b]\nc = 1\nstartup_timeout_sec = 20\n"},
		{"a list of YAML", "continue", "name: x\n", "args: [\"stdio\"]", "args: [\"stdio\"]\n  - name: y",
			"name: x\nmcpServers:\n  - name: y\n"},
		{"a table of YAML", "goose", "a: 1\n", "timeout: 300", "timeout: 5", "a: 1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := here(t, "linux")
			file := p.real(fileOf(t, p, c.client))
			goldenCase{before: c.first, absent: c.first == ""}.lay(t, file)
			change, err := Plan(p, c.client, wantOf(c.client))
			if err != nil {
				t.Fatal(err)
			}
			if err := change.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			text := read(t, file)
			if !strings.Contains(text, c.from) {
				t.Fatalf("%q is not in\n%s", c.from, text)
			}
			goldenCase{before: strings.Replace(text, c.from, c.to, 1)}.lay(t, file)
			if change, err = PlanRemoval(p, c.client, Want{}); err != nil {
				t.Fatal(err)
			}
			if err := change.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := read(t, file); got != c.want {
				t.Errorf("it leaves\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestRemovalWithoutNotes: an entry that a person pasted goes, too; what stands around it stays.
func TestRemovalWithoutNotes(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		p := here(t, "linux")
		file := p.real(fileOf(t, p, client))
		first := shapeOf(t, client).comments
		goldenCase{before: first}.lay(t, file)
		change, err := Plan(p, client, wantOf(client))
		if err != nil {
			t.Fatal(err)
		}
		if err := change.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(p.State, notesFile)); err != nil {
			t.Fatal(err)
		}
		if change, err = PlanRemoval(p, client, Want{}); err != nil {
			t.Fatalf("%s: %v", client, err)
		}
		if err := change.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, file); got != first {
			t.Errorf("%s: it leaves\n%s\nand was\n%s", client, got, first)
		}
	}
}

// TestAgain: installs one after the other, also of a remote server, are taken back at once.
func TestAgain(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		p := here(t, "linux")
		file := p.real(fileOf(t, p, client))
		first := shapeOf(t, client).others
		goldenCase{before: first}.lay(t, file)
		w := wantOf(client)
		remote := Want{Command: w.Command, URL: "https://tools.example.com/mcp", TokenEnv: "CODEHAND_TOKEN"}
		moved := w
		moved.Command = "/opt/codehand"
		for _, w := range []Want{w, remote, moved} {
			change, err := Plan(p, client, w)
			if err != nil {
				t.Fatalf("%s: %v", client, err)
			}
			if err := change.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			e := entryOf(t, p, client)
			if e == nil || !e.Remote && e.Command != w.Command || e.Remote && w.URL == "" {
				t.Errorf("%s: %+v", client, e)
			}
		}
		change, err := PlanRemoval(p, client, Want{})
		if err != nil {
			t.Fatal(err)
		}
		if err := change.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, file); got != first {
			t.Errorf("%s: it leaves\n%s\nand was\n%s", client, got, first)
		}
	}
}

// TestForeign: an entry of our name that starts another program is replaced only by who says so, and is back after an
// uninstall, which leaves one alone that it did not replace.
func TestForeign(t *testing.T) {
	t.Parallel()
	const first = `{"mcpServers": {"codehand": {"command": "docker", "args": ["run"]}}}`
	p, file := laid(t, first, "install")
	for _, plan := range []func() (*Change, error){
		func() (*Change, error) { return Plan(p, "cursor", wanted) },
		func() (*Change, error) { return PlanRemoval(p, "cursor", Want{}) },
	} {
		if _, err := plan(); err == nil {
			t.Error("it is not refused")
		} else if e, ok := errors.AsType[*ForeignError](err); !ok || e.Command != "docker" {
			t.Errorf("refused: %v", err)
		}
	}
	w := wanted
	w.Foreign = true
	c, err := Plan(p, "cursor", w)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := entryOf(t, p, "cursor"); e == nil || e.Command != wanted.Command {
		t.Errorf("%+v", e)
	}
	apply(t, p, "uninstall")
	if got := read(t, file); got != first {
		t.Errorf("it leaves %s", got)
	}
}

// TestNotUnderstood: forms in which nothing can be added are refused, and the text to paste is given.
func TestNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ client, first string }{
		{"cursor", `[]`},
		{"cursor", `"text"`},
		{"cursor", `{"mcpServers": []}`},
		{"cursor", `{"mcpServers": {}, "mcpServers": {"a": {}}}`},
		{"codex", "mcp_servers = {a = {command = \"b\"}}\n"},
		{"codex", "mcp_servers.codehand.command = \"codehand\"\n"},
		{"goose", "extensions: {a: {enabled: true}}\n"},
		{"goose", "extensions: text\n"},
		{"goose", "- a\n"},
		{"continue", "a: 1\n---\nb: 1\n"},
		{"continue", "mcpServers: {a: 1}\n"},
	} {
		p := here(t, "linux")
		file := p.real(fileOf(t, p, c.client))
		goldenCase{before: c.first}.lay(t, file)
		_, err := Plan(p, c.client, wantOf(c.client))
		if e, ok := errors.AsType[*RefusedError](err); !ok || e.File == "" {
			t.Errorf("%s with %s: %v", c.client, c.first, err)
		}
	}
}

// TestUnusual: forms that few people write, and that are understood.
func TestUnusual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, client, first, want string }{
		{"JSON in one line", "cursor", `{"a":1,"mcpServers":{"x":{}}}`,
			`{"a":1,"mcpServers":{"x":{},"codehand":{"command":"C","args":["stdio","${workspaceFolder}"],"env":{}}}}`},
		{"JSON in one line, with blanks", "cursor", "{\"a\": 1, \"mcpServers\": {}}\n", "{\"a\": 1, \"mcpServers\": " +
			"{\"codehand\":{\"command\":\"C\",\"args\":[\"stdio\",\"${workspaceFolder}\"],\"env\":{}}}}\n"},
		{"an empty table with a comment", "goose", "extensions: {} # none\n", "extensions: # none\n  codehand:\n" +
			"    name: codehand\n    type: stdio\n    cmd: \"C\"\n    args: [\"stdio\",\"/home/you/src\"]\n" +
			"    envs: {}\n    enabled: true\n    timeout: 300\n"},
		{"a list that is null", "continue", "mcpServers:\nname: x", "mcpServers:\n  - name: codehand\n" +
			"    command: \"C\"\n    args: [\"stdio\"]\nname: x\n"},
		{"nothing but a comment", "continue", "# mine", "# mine\nname: codehand\nversion: \"1.0.0\"\nschema: \"v1\"\n" +
			"mcpServers:\n  - name: codehand\n    command: \"C\"\n    args: [\"stdio\"]\n"},
		{"no line feed at the end", "codex", "a = 1", "a = 1\n\n[mcp_servers.codehand]\ncommand = \"C\"\n" +
			"args = [\"stdio\"]\ntool_timeout_sec = 600\nstartup_timeout_sec = 20\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := here(t, "linux")
			file := p.real(fileOf(t, p, c.client))
			goldenCase{before: c.first}.lay(t, file)
			w := wantOf(c.client)
			w.Command = "C"
			change, err := Plan(p, c.client, w)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(change.Files[0].New); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if err := change.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if change, err = PlanRemoval(p, c.client, Want{Foreign: true}); err != nil {
				t.Fatal(err)
			}
			if got := string(change.Files[0].New); got != c.first {
				t.Errorf("uninstalled, it is\n%s\nand was\n%s", got, c.first)
			}
		})
	}
}

// TestDanglingLink: a link that leads nowhere is not replaced by a file.
func TestDanglingLink(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	file := p.real(fileOf(t, p, "cursor"))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", file); err != nil {
		t.Skipf("no links here: %v", err)
	}
	if _, err := Plan(p, "cursor", wanted); err == nil || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("error %v", err)
	}
}

// TestExclusive: Claude Code's own tools are denied, ours that read are allowed, and an uninstall takes back exactly
// that, also where a person changed the settings since.
func TestExclusive(t *testing.T) {
	t.Parallel()
	const first = "{\n  // mine\n  \"permissions\": {\n    \"deny\": [\"WebFetch\", \"Bash\"],\n    \"ask\": []\n  }\n}\n"
	w := wanted
	w.Exclusive, w.Allow = true, []string{"read_file", "list_files"}
	for _, c := range []struct{ name, from, to, want string }{
		{"as it was", "", "", first},
		{"changed", `"ask": []`, `"ask": ["X"]`, strings.Replace(first, `"ask": []`, `"ask": ["X"]`, 1)},
		{"changed in the list", `"WebFetch"`, `"WebSearch"`, strings.Replace(first, `"WebFetch"`, `"WebSearch"`, 1)},
		{"added to the list", `"Grep"`, `"Grep", "Task"`,
			"{\n  // mine\n  \"permissions\": {\n    \"deny\": [\"WebFetch\", \"Bash\", \"Task\"],\n    \"ask\": []\n  }\n}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := here(t, "linux")
			file := p.real("/home/you/.claude/settings.json")
			goldenCase{before: first}.lay(t, file)
			for range 2 {
				change, err := Plan(p, "claude-code", w)
				if err != nil {
					t.Fatal(err)
				}
				if err := change.Apply(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			text := read(t, file)
			golden(t, filepath.Join("testdata", "exclusive.json"), []byte(text))
			goldenCase{before: strings.Replace(text, c.from, c.to, 1)}.lay(t, file)
			change, err := PlanRemoval(p, "claude-code", Want{})
			if err != nil {
				t.Fatal(err)
			}
			if err := change.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := read(t, file); got != c.want {
				t.Errorf("it leaves\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	if _, err := Plan(here(t, "linux"), "cursor", w); !errors.Is(err, ErrExclusive) {
		t.Errorf("another client: %v", err)
	}
}

// TestSharedFile: Claude Code and Copilot CLI read the same file of a project, so what is written for one serves both.
func TestSharedFile(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	p.Project = "/home/you/src/app"
	w := wanted
	w.Project = true
	for _, client := range []string{"claude-code", "copilot", "claude-code", "copilot"} {
		c, err := Plan(p, client, w)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text := read(t, p.real("/home/you/src/app/.mcp.json"))
	if !strings.Contains(text, `"type": "stdio"`) || !strings.Contains(text, `"tools": [`) {
		t.Errorf("it is\n%s", text)
	}
	if _, err := os.Stat(p.real("/home/you/src/app/.github")); err == nil {
		t.Error("a second file was written")
	}
}

// TestLinks: what a link says is the entry with the bare name of our program, and no token.
func TestLinks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, client := range Clients() {
		if link := Link(client); link != "" {
			b.WriteString(client + " " + link + "\n")
		}
	}
	golden(t, filepath.Join("testdata", "links.txt"), []byte(b.String()))
}

// TestExclusiveOrder: a process that dies in the middle of an uninstall leaves the client with its own tools, never
// with none.
func TestExclusiveOrder(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	w := wanted
	w.Exclusive, w.Allow = true, []string{"read_file"}
	mustApply(t, must(Plan(p, "claude-code", w)))
	c := must(PlanRemoval(p, "claude-code", Want{}))
	if len(c.Files) != 2 || filepath.Base(c.Files[0].File) != "settings.json" {
		t.Errorf("the settings are not first: %+v", c.Files)
	}
}

// TestExclusiveWithoutEntry: the client's own tools are denied by us and our entry is gone. It is seen, with and without a note, and an
// uninstall gives them back; what a person denied stays.
func TestExclusiveWithoutEntry(t *testing.T) {
	t.Parallel()
	const mine = "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebFetch\"\n    ]\n  }\n}\n"
	for _, noted := range []bool{true, false} {
		for _, project := range []bool{true, false} {
			p := here(t, "linux")
			p.Project = "/home/you/src/app"
			file := p.exclusiveFile("claude-code", project)
			goldenCase{before: mine}.lay(t, p.real(file))
			w := wanted
			w.Exclusive, w.Allow, w.Project = true, []string{"read_file"}, project
			mustApply(t, must(Plan(p, "claude-code", w)))
			if at := Exclusive(p, "claude-code", project); at != file {
				t.Errorf("exclusive in %q, want %q", at, file)
			}
			entry := "/home/you/.claude.json"
			if project {
				entry = "/home/you/src/app/.mcp.json"
			}
			if err := os.Remove(p.real(entry)); err != nil {
				t.Fatal(err)
			}
			if !noted {
				if err := os.Remove(filepath.Join(p.State, notesFile)); err != nil {
					t.Fatal(err)
				}
			}
			if at := Exclusive(p, "claude-code", project); at != file {
				t.Errorf("without an entry exclusive in %q, want %q", at, file)
			}
			mustApply(t, must(PlanRemoval(p, "claude-code", Want{Project: project})))
			if got := read(t, p.real(file)); got != mine {
				t.Errorf("noted %v, project %v: it leaves\n%s", noted, project, got)
			}
			if at := Exclusive(p, "claude-code", project); at != "" {
				t.Errorf("exclusive still: %s", at)
			}
		}
	}
	p := here(t, "linux")
	file := p.real("/home/you/.claude/settings.json")
	const own = `{"permissions": {"deny": ["Read", "Bash"], "allow": ["mcp__codehand__read_file"]}}`
	goldenCase{before: own}.lay(t, file)
	if c := must(PlanRemoval(p, "claude-code", Want{})); len(c.Files) != 0 {
		t.Errorf("a person's own settings are changed: %s", c.Files[0].Diff)
	}
}

func mustApply(t *testing.T, c *Change) {
	t.Helper()
	if err := c.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func must(c *Change, err error) *Change {
	if err != nil {
		panic(err)
	}
	return c
}

// TestEmptyFileStays: an uninstall leaves a file that it did not make, be it empty, and writes to one that is reached
// through a link in place of removing it.
func TestEmptyFileStays(t *testing.T) {
	t.Parallel()
	for _, noted := range []bool{true, false} {
		for _, client := range Clients() {
			p := here(t, "linux")
			file := p.real(fileOf(t, p, client))
			goldenCase{before: ""}.lay(t, file)
			w := wantOf(client)
			if client == "claude-code" {
				w.Exclusive, w.Allow = true, []string{"read_file"}
				goldenCase{before: ""}.lay(t, p.real("/home/you/.claude/settings.json"))
			}
			mustApply(t, must(Plan(p, client, w)))
			if !noted {
				if err := os.Remove(filepath.Join(p.State, notesFile)); err != nil {
					t.Fatal(err)
				}
			}
			mustApply(t, must(PlanRemoval(p, client, Want{})))
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s, noted %v: %v", client, noted, err)
			}
			if _, err := os.Stat(p.real("/home/you/.claude/settings.json")); client == "claude-code" && err != nil {
				t.Errorf("settings, noted %v: %v", noted, err)
			}
		}
	}
	p := here(t, "linux")
	file := p.real(fileOf(t, p, "cursor"))
	mustApply(t, must(Plan(p, "cursor", wanted)))
	target := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.Rename(file, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Skipf("no links here: %v", err)
	}
	mustApply(t, must(PlanRemoval(p, "cursor", Want{})))
	if got, err := os.ReadFile(target); err != nil || len(got) != 0 {
		t.Errorf("behind the link: %q, %v", got, err)
	}
}

// TestAsideStays: what an uninstall that was killed left beside a file is a person's, and the next one leaves it.
func TestAsideStays(t *testing.T) {
	t.Parallel()
	p := here(t, "linux")
	file := p.real(fileOf(t, p, "cursor"))
	mustApply(t, must(Plan(p, "cursor", wanted)))
	goldenCase{before: "mine"}.lay(t, file+".codehand-removed")
	mustApply(t, must(PlanRemoval(p, "cursor", Want{})))
	if got := read(t, file+".codehand-removed"); got != "mine" {
		t.Errorf("it is %q", got)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file is still there")
	}
}
