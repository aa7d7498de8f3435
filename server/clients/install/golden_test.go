package install

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"codehand/server/clients"
	"codehand/server/clients/install/forms"
)

var update = flag.Bool("update", false, "rewrite golden files")

// here are the places of a person on a system, below a directory of the test.
func here(t *testing.T, goos string) Places {
	t.Helper()
	p := Places{GOOS: goos, Home: "/home/you", Root: t.TempDir(), State: filepath.Join(t.TempDir(), "state")}
	env := map[string]string{}
	switch goos {
	case "darwin":
		p.Home = "/Users/you"
	case "windows":
		p.Home = `C:\Users\you`
		env["APPDATA"] = `C:\Users\you\AppData\Roaming`
	}
	p.Env = func(key string) string { return env[key] }
	return p
}

// wanted is what the tests install.
var wanted = Want{Command: "/home/you/go/bin/codehand"}

// wantOf is that for a client, with a directory where it needs one.
func wantOf(client string) Want {
	w := wanted
	if _, err := snippetOf(client, w, nil); errors.Is(err, ErrRootNeeded) {
		w.Roots = []string{"/home/you/src"}
	}
	return w
}

// shape is how the files of a client are written in the cases.
type shape struct{ others, comments, old, broken string }

func shapeOf(t *testing.T, client string) shape {
	t.Helper()
	s, err := snippetOf(client, wantOf(client), nil)
	if err != nil {
		t.Fatal(err)
	}
	switch filepath.Ext(s.Files.Linux) {
	case ".toml":
		return shape{
			others: "model = \"o5\"\n\n[mcp_servers.files]\ncommand = \"npx\"\nargs = [\n  \"-y\",\n  \"files\",\n]\n",
			comments: "# mine\nmodel = \"o5\" # the best\n\n# servers\n[mcp_servers.files] # of files\ncommand = 'npx'\n\n" +
				"# the end\n",
			old: "[mcp_servers.codehand]\ncommand = \"/old/codehand\"\nargs = [\n  \"stdio\",\n]\n" +
				"default_tools_approval_mode = \"approve\" # mine\ntool_timeout_sec = 900\n\n" +
				"[mcp_servers.codehand.env]\nCODEHAND_MODE = \"plan\"\n\n# files\n[mcp_servers.files]\ncommand = \"npx\"\n",
			broken: "model = \"o5\"\n[mcp_servers\n",
		}
	case ".yaml":
		if strings.HasPrefix(s.Text, "extensions:\n") { // as Goose has them; else as Continue, a list
			return shape{
				others: "GOOSE_MODEL: o5\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nlast: 1\n",
				comments: "# mine\nGOOSE_MODEL: o5  # the best\n\n\nextensions:\n    # of Goose\n    developer:\n" +
					"        enabled: true\n        type: builtin\n\n# the end\nlast:\n- 1\n- two\n",
				old: "extensions:\n  codehand:\n    name: codehand\n    type: stdio\n    cmd: /old/codehand\n" +
					"    args: [stdio, /home/you/old]\n    available_tools: # mine\n      - read_file\n    timeout: 900\n" +
					"  developer:\n    enabled: true\n",
				broken: "extensions:\n  developer: {enabled: true\n",
			}
		}
		return shape{
			others: "name: mine\nversion: 1.0.0\nschema: v1\nmcpServers:\n  - name: files\n    command: npx\nrules: []\n",
			comments: "# mine\nname: mine  # the best\n\n\nmcpServers:\n# of files\n- name: files\n  command: npx\n\n" +
				"# the end\nversion: 1.0.0\n",
			old: "name: mine\nmcpServers:\n  - command: /old/codehand\n    name: codehand\n    args: [stdio]\n" +
				"    connectionTimeout: 5 # mine\n  - name: files\n    command: npx\n",
			broken: "name: mine\nmcpServers:\n  - name: [files\n",
		}
	}
	tree, err := forms.JSON.Decode([]byte(s.Text))
	if err != nil {
		t.Fatal(err)
	}
	key := forms.Container(tree)
	return shape{
		others: "{\n  \"first\": 1,\n  \"" + key + "\": {\n    \"files\": {\n      \"command\": \"npx\"\n    }\n  },\n" +
			"  \"last\": [1, 2.50, \"<&>\"]\n}\n",
		comments: "// mine\n{\n\t\"first\": 1, // the best\n\n\n\t/* servers */\n\t\"" + key + "\": {\n\t\t\"files\": {\n" +
			"\t\t\t\"command\": \"npx\",\n\t\t}, // of files\n\t\t// more\n\t}, // of all\n}\n// the end\n",
		old: "{\"" + key + "\": {\n  \"codehand\": {\"command\": \"/old/codehand\", \"timeout\": 900, \"args\": [\"stdio\"],\n" +
			"    \"env\": {\"CODEHAND_MODE\": \"plan\"}, \"alwaysAllow\": [\"read_file\"]}, // mine\n  \"files\": {}\n}}\n",
		broken: "{\n  \"" + key + "\": {\n    \"files\": {]\n  }\n}\n",
	}
}

// goldenCase is a file before an install. fail: the install is refused.
type goldenCase struct {
	name, before string
	absent, link bool
	mode         os.FileMode
	fail         bool
}

func casesOf(t *testing.T, client string) []goldenCase {
	s := shapeOf(t, client)
	return []goldenCase{
		{name: "absent", absent: true},
		{name: "empty"},
		{name: "comments", before: s.comments},
		{name: "others", before: s.others},
		{name: "old", before: s.old},
		{name: "readonly", before: s.others, mode: 0o400, fail: true},
		{name: "symlink", before: s.others, link: true},
		{name: "broken", before: s.broken, fail: true},
		{name: "bom", before: "\ufeff" + s.others},
		{name: "crlf", before: strings.ReplaceAll(s.comments, "\n", "\r\n")},
	}
}

// TestGolden installs into every form that a client's file can have, and takes it out again: the file is then as it
// was, byte for byte. Each golden file shows what is written.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, client := range Clients() {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			var a txtar.Archive
			for _, c := range casesOf(t, client) {
				t.Run(c.name, func(t *testing.T) { a.Files = append(a.Files, c.try(t, client)...) })
			}
			golden(t, filepath.Join("testdata", "golden", client+".txtar"), txtar.Format(&a))
		})
	}
}

// try returns what an archive shows of the case.
func (c goldenCase) try(t *testing.T, client string) []txtar.File {
	p := here(t, "linux")
	file := p.real(fileOf(t, p, client))
	c.lay(t, file)
	show := func(name string, content []byte) txtar.File {
		text := strings.NewReplacer("\r\n", "\\r\n", "\ufeff", "\\uFEFF", p.Root, "$ROOT").Replace(string(content))
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "(no line feed)\n"
		}
		return txtar.File{Name: c.name + "/" + name, Data: []byte(text)}
	}
	out := []txtar.File{show("before", []byte(c.before))}
	if c.absent {
		out = nil
	}
	change, err := Plan(p, client, wantOf(client))
	if c.fail {
		if err == nil {
			t.Fatal("it is not refused")
		}
		if got := read(t, file); got != c.before {
			t.Errorf("the file has changed:\n%s", got)
		}
		return append(out, show("refused", []byte(err.Error()+"\n")))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := []byte(read(t, file))
	out = append(out, show("after", after))
	for _, f := range change.Files {
		if !bytes.Equal(f.New, after) {
			t.Errorf("%s has not what was planned", f.File)
		}
	}
	if again, err := Plan(p, client, wantOf(client)); err != nil || len(again.Files) != 0 {
		t.Errorf("the same once more: %v, %+v", err, again)
	}
	found := entryOf(t, p, client)
	if found == nil || found.Command != wanted.Command || found.Disabled {
		t.Errorf("the entry is %+v", found)
	}

	undo, err := PlanRemoval(p, client, Want{})
	if err != nil {
		t.Fatal(err)
	}
	if err := undo.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.name == "old" {
		return append(out, show("uninstalled", []byte(read(t, file))))
	}
	if c.absent {
		left, err := filepath.Glob(filepath.Join(p.Root, "*", "*", ".*"))
		if err != nil || len(left) != 0 {
			t.Errorf("uninstalled, it leaves %q, %v", left, err)
		}
		return out
	}
	if got := read(t, file); got != c.before {
		t.Errorf("uninstalled, the file is\n%s\nand was\n%s", got, c.before)
	}
	if info, err := os.Lstat(file); err != nil || (info.Mode()&os.ModeSymlink != 0) != c.link {
		t.Errorf("it is %v, %v", info, err)
	}
	return out
}

// lay makes the file of a case.
func (c goldenCase) lay(t *testing.T, file string) {
	t.Helper()
	if c.absent {
		return
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	target := file
	if c.link {
		target = filepath.Join(t.TempDir(), "dotfiles")
		if err := os.Symlink(target, file); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	if err := os.WriteFile(target, []byte(c.before), 0o640); err != nil {
		t.Fatal(err)
	}
	if c.mode != 0 {
		if err := os.Chmod(target, c.mode); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fileOf is the client's file.
func fileOf(t *testing.T, p Places, client string) string {
	t.Helper()
	all := Look(p)
	at := slices.IndexFunc(all, func(f Found) bool { return f.Client == client })
	if at < 0 {
		t.Fatalf("%s is not found", client)
	}
	return all[at].File
}

// entryOf is our entry of a client's file.
func entryOf(t *testing.T, p Places, client string) *Entry {
	t.Helper()
	for _, f := range Look(p) {
		if f.Client == client {
			if f.Err != nil {
				t.Fatal(f.Err)
			}
			return f.Entry
		}
	}
	return nil
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if *update || os.IsNotExist(err) && os.Getenv("CI") == "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs. got:\n%s\nIf it is better now: go test ./server/clients/install -update, and read the diff.",
			file, got)
	}
}

// TestWritesSnippets: what an install writes where nothing was is what README and serve tell people to paste.
func TestWritesSnippets(t *testing.T) {
	t.Parallel()
	for _, e := range []Want{
		{Command: "/go/bin/codehand", Roots: []string{"/home/you/src"}},
		{Command: "/go/bin/codehand", URL: "http://127.0.0.1:7433/mcp"},
		{Command: "/go/bin/codehand", URL: "https://tools.example.com/mcp?a=1&b=2", TokenEnv: "CODEHAND_TOKEN"},
	} {
		snippets := clients.Local(clients.Launch{Command: e.Command, Roots: e.Roots})
		if e.URL != "" {
			snippets = clients.Snippets(clients.Endpoint{URL: e.URL, TokenEnv: e.TokenEnv, Command: e.Command})
		}
		for _, s := range snippets {
			p := here(t, "linux")
			change, err := Plan(p, s.ID, e)
			if err != nil {
				t.Fatalf("%s: %v", s.ID, err)
			}
			form := forms.For(change.Files[0].File)
			got, err := form.Decode(change.Files[0].New)
			if err != nil {
				t.Fatalf("%s: %v", s.ID, err)
			}
			want, err := form.Decode([]byte(s.Text))
			if err != nil || !forms.Same(got, want) {
				t.Errorf("%s, %q: it writes\n%s\nand people are told\n%s", s.ID, e.URL, change.Files[0].New, s.Text)
			}
			if bytes.Contains(change.Files[0].New, []byte("CODEHAND_TOKEN=")) {
				t.Errorf("%s: it writes a token", s.ID)
			}
		}
	}
}

// TestPageOfClients: the entry that docs/clients shows for any client is what an install writes.
func TestPageOfClients(t *testing.T) {
	t.Parallel()
	page := read(t, filepath.Join("..", "..", "..", "docs", "clients", "README.md"))
	_, rest, _ := strings.Cut(page, "```json\n{\n  \"mcpServers\"")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/clients/README.md has no block of JSON that begins with mcpServers")
	}
	want, err := forms.JSON.Decode([]byte("{\n  \"mcpServers\"" + block))
	if err != nil {
		t.Fatal(err)
	}
	w := wanted
	w.Roots = []string{"/path/to/your/project"}
	c, err := Plan(here(t, "linux"), "claude-desktop", w)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := forms.JSON.Decode(c.Files[0].New); err != nil || !forms.Same(got, want) {
		t.Errorf("an install writes\n%s\nand docs/clients/README.md has\n%s", c.Files[0].New, block)
	}
}
