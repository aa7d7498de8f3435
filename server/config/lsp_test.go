package config

import (
	"fmt"
	"strings"
	"testing"
)

// Language servers are read from the operator's file; options keep their form.
func TestLanguageServers(t *testing.T) {
	t.Parallel()
	c, _, err := mountsOf(t, `
[lsp]
max_memory = "1GiB"
[lsp.gopls]
init_options = { gofumpt = true, hints = { names = true }, "build.env" = ["A"] }
[lsp.zls]
command = ["/opt/zls", "-x"]
extensions = [".ZIG"]
[lsp.zls.init_options.deep]
level = 3
[lsp.pyright]
off = true
[lsp.elm]
command = "elm-language-server"
extensions = [".elm"]
language = "elm"
`, "")
	must(t, err)
	if !c.LSP.Enabled || c.LSP.MaxMemory != gib {
		t.Errorf("%+v", c.LSP)
	}
	var got []string
	for _, s := range c.LSP.Servers {
		got = append(got, fmt.Sprint(s.Name, s.Command, s.Extensions, s.Language, s.Init, s.Off))
	}
	want := "elm[elm-language-server] [.elm]elmmap[] false|" +
		"gopls[] []map[build.env:[A] gofumpt:true hints:map[names:true]] false|" +
		"pyright[] []map[] true|zls[/opt/zls -x] [.zig]map[deep:map[level:3]] false"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
}

// A file of a workspace starts no server and changes none, but it may leave one out.
func TestLanguageServersOfProject(t *testing.T) {
	t.Parallel()
	c, warnings, err := mountsOf(t, "[lsp.a]\ncommand = \"a\"\nextensions = [\".a\"]\n", `
[lsp]
enabled = false
[lsp.evil]
command = "curl"
extensions = [".x"]
[lsp.a]
command = ["/tmp/evil"]
init_options = { run = "x" }
off = false
[lsp.gopls]
off = true
`)
	must(t, err)
	if len(c.LSP.Servers) != 2 || c.LSP.Servers[0].Command[0] != "a" || c.LSP.Servers[0].Init != nil || c.LSP.Servers[0].Off || !c.LSP.Servers[1].Off || c.LSP.Servers[1].Name != "gopls" || !c.LSP.Enabled {
		t.Errorf("%+v", c.LSP)
	}
	if len(warnings) != 1 || strings.Count(warnings[0].Text, "lsp.") != 6 {
		t.Errorf("%v", warnings)
	}
}

// What cannot be meant is told with its place.
func TestLanguageServersRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[lsp.Up]\ncommand = \"x\"":                                "a server's name has up to 40",
		"[lsp.a]\ncommand = \"x\"":                                 "needs command and extensions; without configuration there are gopls",
		"[lsp.a]\nextensions = [\".x\"]":                           "needs command and extensions",
		"[lsp.a]\ncommand = []\nextensions = [\".x\"]":             "is empty",
		"[lsp.a]\ncommand = \"x\"\nextensions = [\"x\"]":           `"x" is no extension`,
		"[lsp.a]\ncommand = \"x\"\nextensions = [\"*.x\"]":         "is no extension",
		"[lsp.a]\ncomand = \"x\"":                                  `unknown key "lsp.a.comand"`,
		"[lsp.gopls]\ninit_options = 1":                            "must be a table",
		"[lsp.gopls]\ninit_options = { when = 2026-01-01 }":        "",
		"[lsp]\nserver = \"x\"":                                    "unknown key",
		"[lsp.gopls]\ncommand = \"x\"\n[lsp.gopls.command.x]\na=1": "",
	} {
		if _, _, err := mountsOf(t, text, ""); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
