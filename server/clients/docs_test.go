package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/clients"
)

// docs has a page for each client, seen from this package.
const docs = "../../docs/clients"

// team is an endpoint as a team has it.
var team = clients.Endpoint{URL: "https://tools.example.com/mcp", TokenEnv: "CODEHAND_TOKEN", Command: "/home/you/go/bin/codehand"}

// TestDocs holds the pages of docs/clients: there is one for each client and no other, and what they print of snippets
// and limits is what the program has. With -update it begins the page of a new client.
func TestDocs(t *testing.T) {
	local, remote := clients.Local(clients.Launch{}), clients.Snippets(team)
	var wanted []string
	for _, c := range clients.All() {
		wanted = append(wanted, c.ID+".md")
		page := filepath.Join(docs, c.ID+".md")
		if _, err := os.Lstat(page); os.IsNotExist(err) && *update {
			if err := os.WriteFile(page, []byte(begun(c)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := os.ReadFile(page); err != nil || !bytes.HasPrefix(b, []byte("# "+c.Title+"\n")) {
			t.Errorf("%s does not begin with # %s: %v; go test ./server/clients -update begins it", page, c.Title, err)
			continue
		}
		holdPart(t, page, "limits", limitsOf(clients.ProfileOf(c)))
		if at := slices.IndexFunc(local, func(s clients.Snippet) bool { return s.ID == c.ID }); at >= 0 {
			holdPart(t, page, "snippet", snippetOf(local[at].Start.Roots, c.ID, remote[at]))
		}
	}
	holdPart(t, filepath.Join(docs, "README.md"), "index", index())
	found, err := filepath.Glob(docs + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if base := filepath.Base(f); base != "README.md" && !slices.Contains(wanted, base) {
			t.Errorf("%s is of no client: remove it, or add the client to the list in clients.go", f)
		}
	}
}

// TestProtects: tools/guarded has the names that clients say, one a line.
func TestProtects(t *testing.T) {
	t.Parallel()
	const path = "../../tools/guarded/clients.txt"
	want := ""
	for _, c := range clients.All() {
		for _, name := range c.Protects {
			want += name + "\n"
		}
		// What decides which servers a client starts in a project is protected, by its row or by another client's.
		if at := c.Files.Project; at != "" && !slices.ContainsFunc(clients.All(), func(c clients.Client) bool {
			return slices.ContainsFunc(c.Protects, func(name string) bool {
				dir, whole := strings.CutSuffix(name, "**")
				return at == name || whole && strings.HasPrefix(at, dir)
			})
		}) {
			t.Errorf("%s: %s is not protected", c.ID, at)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not what clients say: %v; go test ./server/clients -update, and read the diff", path, err)
	}
}

// begun is the page of a client before a person has written what it does with codehand.
func begun(c clients.Client) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nHow we know what is said here: %s.\n\n", c.Title, c.Known)
	limits := "<!-- limits:begin -->\n<!-- limits:end -->\n"
	if (c.Files == clients.Files{}) {
		return b.String() + limits
	}
	root := ""
	if c.TakesRoots() {
		root = " ~/src/project"
	}
	fmt.Fprintf(&b, "## Connect\n\n```sh\ncodehand install %s%s\n```\n\n<!-- snippet:begin -->\n<!-- snippet:end -->\n\n%s\n",
		c.ID, root, limits)
	fmt.Fprintf(&b, "## Verify\n\n`codehand doctor %s` starts the entry as the client would, lists the tools and says what is "+
		"wrong.\n\n## Remove\n\n`codehand uninstall %s` takes the entry out.\n", c.ID, c.ID)
	return b.String()
}

// holdPart fails if a generated part of a page is not want, or writes it with -update.
func holdPart(t *testing.T, page, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Error(err)
		return
	}
	head, rest, ok := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Errorf("%s has no %s … %s", page, strings.TrimSpace(begin), end)
	case old == want:
	case !*update:
		t.Errorf("the part %s of %s has drifted: go test ./server/clients -update, and read the diff.", name, page)
	default:
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// snippetOf is where a client's file is, what install writes into an empty one, and what the entry for a server is that
// runs already.
func snippetOf(rooting clients.Rooting, client string, remote clients.Snippet) string {
	launch := clients.Launch{Command: "/home/you/go/bin/codehand", Path: "/home/you/go/bin:/usr/local/bin:/usr/bin:/bin"}
	switch rooting {
	case clients.RootNeeded, clients.RootOptional:
		launch.Roots = []string{"/home/you/src/project"}
	case clients.RootVariable:
		launch.Roots = []string{clients.WorkspaceFolder}
	}
	all := clients.Local(launch)
	s := all[slices.IndexFunc(all, func(s clients.Snippet) bool { return s.ID == client })]
	var b strings.Builder
	b.WriteString("| system | file |\n|---|---|\n")
	row := func(system string, of func(clients.Files) string) {
		var places []string
		for _, f := range append([]clients.Files{s.Files}, s.Other...) {
			if at := of(f); at != "" {
				places = append(places, "`"+at+"`")
			}
		}
		if len(places) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", system, strings.Join(places, " or "))
		}
	}
	row("Linux", func(f clients.Files) string { return f.Linux })
	row("macOS", func(f clients.Files) string { return f.MacOS })
	row("Windows", func(f clients.Files) string { return f.Windows })
	row("in a project", func(f clients.Files) string { return f.Project })
	fmt.Fprintf(&b, "\nThis is all of the file if it was empty or missing. To another one add the entry `codehand`:\n\n%s",
		fenced(s))
	fmt.Fprintf(&b, "\nTo connect it to a running `codehand serve` that wants the token in `CODEHAND_TOKEN`:\n\n%s",
		fenced(remote))
	return b.String()
}

// fenced is a snippet as a block of its language. JSON, which is written in one line, is laid out.
func fenced(s clients.Snippet) string {
	language, text := strings.TrimPrefix(filepath.Ext(s.Files.Linux), "."), s.Text
	var laid bytes.Buffer
	if language == "json" && json.Indent(&laid, []byte(text), "", "  ") == nil {
		text = laid.String()
	}
	return "```" + language + "\n" + text + "```\n"
}

// limitsOf is what codehand does for clients of a profile.
func limitsOf(p clients.Profile) string {
	var names []string
	for _, n := range clients.NamesOf(p.Name) {
		names = append(names, "`"+n+"`")
	}
	var b strings.Builder
	row := func(what, how string) { fmt.Fprintf(&b, "| %s | %s |\n", what, how) }
	if p.Name == "default" {
		b.WriteString("codehand has no profile for it and keeps to what is safe everywhere:\n\n")
		b.WriteString("| what | how |\n|---|---|\n")
	} else {
		fmt.Fprintf(&b, "codehand keeps to the profile `%s`:\n\n", p.Name)
		b.WriteString("| what | how |\n|---|---|\n")
		row("names that it gives itself", strings.Join(names, ", "))
	}
	row("longest result", longest(p))
	row("images", map[clients.ImagePolicy]string{
		clients.ImagesAsText: "none; a line with type, size and path", clients.FirstImage: "the first of a result",
		clients.AllImages: "all",
	}[p.Images])
	listed := "the usual ones; `tool_search` finds the others"
	if p.DeferAll {
		listed = "all"
	}
	row("tools that are listed", listed)
	if !p.DeferAll {
		row("a tool that was found", map[clients.Reach]string{
			clients.EitherWay: "is called by its name or through `call_tool`", clients.ByName: "is called by its name",
			clients.ByDispatcher:  "is called through `call_tool`",
			clients.ByNameInOrder: "is called by its name on stdio, through `call_tool` over HTTP",
		}[p.Found])
	}
	if p.Reopens {
		row("what was read", "counts in all conversations over HTTP, unless the client sends the id of one")
	}
	if p.Loads != "" {
		row("project instructions", "on stdio the client reads `"+strings.Join(strings.Fields(p.Loads), "` and `")+
			"` of its project itself; codehand names the others")
	}
	row("sign of life during a call", fmt.Sprintf("every %d s, if the client sends a progress token", clients.Beat/time.Second))
	background := "110 s (`shell.auto_background_ms`)"
	if after := p.ToBackground(); after > 0 {
		background = fmt.Sprintf("%d s, or as `shell.auto_background_ms` says if you set it", after/time.Second)
	}
	row("a command moves to the background", "after "+background)
	return b.String()
}

// longest says how much of a result is shown.
func longest(p clients.Profile) string {
	out := thousands(p.Runes) + " characters"
	for _, more := range []struct {
		n    int
		unit string
	}{{p.Bytes, "bytes"}, {p.Lines, "lines"}} {
		if more.n > 0 {
			out += ", " + thousands(more.n) + " " + more.unit
		}
	}
	if p.JSON > 0 {
		out += ", counted as a string of JSON"
	}
	if best := longestModel(p); best.Runes > p.Runes {
		out += "; up to " + thousands(best.Runes) + " for a model that the client knows"
	}
	return out
}

// longestModel is the profile with the model for which it shows most.
func longestModel(p clients.Profile) clients.Profile {
	best := p
	for _, model := range []string{"gpt-5.5", "gpt-6-"} { // one of each size
		if m := p.ForModel(model); m.Runes > best.Runes {
			best = m
		}
	}
	return best
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// index is the table of all clients.
func index() string {
	var b strings.Builder
	b.WriteString("| client | id | `codehand install` | how we know |\n|---|---|---|---|\n")
	for _, c := range clients.All() {
		writes := "no"
		if (c.Files != clients.Files{}) {
			writes = "yes"
		}
		fmt.Fprintf(&b, "| [%s](%s.md) | `%s` | %s | %s |\n", c.Title, c.ID, c.ID, writes, c.Known)
	}
	return b.String()
}
