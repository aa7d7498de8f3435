package doctor

import (
	"strings"
	"testing"

	"codehand/server/clients"
	"codehand/server/clients/install"
)

// TestExpand: each client replaces what it replaces. Doctor replaced ${X} for all of them, so that an entry that
// Claude Desktop starts with a literal ${HOME} looked good, and one with a default looked bad.
func TestExpand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env("WHERE", "here")
	for _, c := range []struct{ client, written, want, unknown string }{
		{"claude-desktop", "${WHERE} $WHERE", "${WHERE} $WHERE", ""},
		{"codex", "${WHERE}", "${WHERE}", ""},
		{"zed", "${WHERE}", "${WHERE}", ""},
		{"claude-code", "${WHERE}/x $WHERE", "here/x $WHERE", ""},
		{"claude-code", "${WHERE:-there} ${NOWHERE:-there} ${NOWHERE:-}", "here there ", ""},
		{"claude-code", "${NOWHERE}", "${NOWHERE}", "${NOWHERE}"},
		{"vscode", "${env:WHERE} ${env:NOWHERE} ${workspaceFolder} ${userHome} ${workspaceFolderBasename}",
			"here  " + r.at("ws") + " " + r.at("home") + " ws", ""},
		{"vscode", "${input:token}", "${input:token}", "${input:token}"},
		{"vscode-insiders", "${WHERE}", "${WHERE}", "${WHERE}"},
		{"cursor", "${env:WHERE} ${workspaceFolder} ${/}", "here " + r.at("ws") + " /", ""},
		{"windsurf", "${env:WHERE} ${WHERE} ${workspaceFolder}", "here ${WHERE} ${workspaceFolder}", ""},
		{"gemini", "${WHERE} $WHERE ${NOWHERE} $NOWHERE", "here here ${NOWHERE} $NOWHERE", ""},
		{"opencode", "{env:WHERE}{env:NOWHERE} ${WHERE}", "here ${WHERE}", ""},
		{"opencode", "{file:~/token}", "{file:~/token}", "{file:~/token}"},
		{"kiro", "plain", "plain", ""},
		{"kiro", "${WHERE}", "${WHERE}", "${WHERE}"},
		{"continue", "${{ secrets.X }}", "${{ secrets.X }}", "${{ secrets.X }}"},
	} {
		client, _ := clients.Of(c.client)
		x := expanding{client: client, by: surroundingsOf(r.machine, r.at("ws"))}
		if got := x.text(c.written); got != c.want || x.unknown != c.unknown {
			t.Errorf("%s: %s: %q and %q unknown, want %q and %q", c.client, c.written, got, x.unknown, c.want, c.unknown)
		}
	}
}

// TestExpandEntry: all of an entry is replaced, and one with a value that only the client knows is not tried without.
func TestExpandEntry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env("URL", "nonsense")
	r.write("home/.cursor/mcp.json", `{"mcpServers": {"codehand": {"url": "${env:URL}"}}}`)
	r.write("home/.config/Code/User/mcp.json", `{"servers": {"codehand": {"command": "`+r.machine.Program+
		`", "args": ["stdio", "${input:where}"]}}}`)
	r.write("home/Library/Application Support/Code/User/mcp.json", `{"servers": {"codehand": {"command": "`+
		r.machine.Program+`", "args": ["stdio", "${input:where}"]}}}`)
	text := ""
	for _, f := range append(r.find("handshake"), r.find("clients")...) {
		text += string(f.Level) + " " + f.Text + "\n"
	}
	for _, want := range []string{"FAIL cursor: legacy: nonsense: ",
		"note vscode: not started: only the client knows ${input:where}"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	l := clientChecks{r.machine}.launch(install.Found{Client: "claude-code", Entry: &install.Entry{
		Command: "${BIN:-codehand}", Dir: "${DIR:-/}", Env: map[string]string{"A": "${A:-b}"}}})
	if l.command != r.machine.Program || l.dir != "/" || valueOf(l.env, "A") != "b" {
		t.Errorf("%+v", l)
	}
}

// TestHomeClients: some clients start servers in the home directory, which is no root. Doctor started them in the
// project, where all looked good.
func TestHomeClients(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"windsurf", "zed", "junie", "kiro"} {
		r := newRig(t)
		found := install.Found{Client: client, Entry: &install.Entry{Command: r.machine.Program, Args: []string{"stdio"}}}
		if l := (clientChecks{r.machine}).launch(found); l.dir != r.at("home") {
			t.Errorf("%s is started in %s", client, l.dir)
		}
	}
	r := newRig(t)
	settings := func(root string) {
		r.write("home/.codeium/windsurf/mcp_config.json", `{"mcpServers": {"codehand": {"command": "`+r.machine.Program+
			`", "args": ["stdio"`+root+`]}}}`)
	}
	text := func() (text string) {
		for _, f := range r.find("clients") {
			text += string(f.Level) + " " + f.Text + " -> " + f.Fix + "\n"
		}
		return text
	}
	settings("")
	if got := text(); !strings.Contains(got, "note windsurf: ") || !strings.Contains(got, "without ROOT") ||
		!strings.Contains(got, "-> run: codehand install windsurf DIRECTORY") ||
		!strings.Contains(got, "configured in windsurf") {
		t.Errorf("%s", got)
	}
	settings(`, "` + r.at("ws") + `"`)
	if got := text(); strings.Contains(got, "without ROOT") {
		t.Errorf("with a root:\n%s", got)
	}
}
