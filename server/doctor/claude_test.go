package doctor

import (
	"strings"
	"testing"
)

// clientsText is what the check of the clients says.
func (r *rig) clientsText() (text string) {
	for _, f := range r.find("clients") {
		text += string(f.Level) + " " + f.Text + " -> " + f.Fix + "\n"
	}
	return text
}

// TestClaudeLocalScope: what claude mcp add writes without -s counts for one directory, and doctor said that Claude
// Code was not configured.
func TestClaudeLocalScope(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dir, entry string
		want       string // "": nothing about it
	}{
		"here":        {"ws", `"codehand": {"command": "codehand", "args": ["stdio"]}`, "alone (local scope): $DIR -> "},
		"elsewhere":   {"other", `"codehand": {"command": "codehand", "args": ["stdio"]}`, "alone (local scope): $DIR -> "},
		"other name":  {"ws", `"hands": {"command": "/opt/codehand", "args": ["stdio"]}`, "alone (local scope): $DIR -> "},
		"other":       {"ws", `"git": {"command": "git"}`, ""},
		"of no shape": {"ws", `"codehand": 7`, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("home/.claude.json", `{"projects": {"`+r.at(c.dir)+`": {"mcpServers": {`+c.entry+`}}, "/x": 1}}`)
			text := r.clientsText()
			if want := strings.ReplaceAll(c.want, "$DIR", r.at(c.dir)); want == "" {
				if !strings.Contains(text, "not configured: claude-code") {
					t.Errorf("%s", text)
				}
			} else if !strings.Contains(text, "note claude-code: ") || !strings.Contains(text, want) ||
				strings.Contains(text, "not configured") {
				t.Errorf("no %q:\n%s", want, text)
			}
			if r.machine.Client = "claude-code"; c.want != "" && strings.Contains(r.clientsText(), "FAIL") {
				t.Errorf("%s", r.clientsText())
			}
		})
	}
}

const exclusiveSettings = `{"permissions": {"deny": ["Read", "Edit", "Write", "NotebookEdit", "Bash", "Glob", "Grep"],
	"allow": ["mcp__codehand__read_file"]}}`

// TestClaudeWithoutTools: after install --exclusive the entry went, and Claude Code had no tools for files, its own or
// ours. Doctor found nothing.
func TestClaudeWithoutTools(t *testing.T) {
	t.Parallel()
	entry := func(r *rig) string {
		return `{"mcpServers": {"codehand": {"command": "` + r.machine.Program + `", "args": ["stdio"]}}}`
	}
	for name, c := range map[string]struct {
		prepare func(*rig)
		level   Level // "": nothing is found
		fix     string
	}{
		"user": {func(r *rig) { r.write("home/.claude/settings.json", exclusiveSettings) }, Fail,
			"codehand uninstall claude-code"},
		"moved": {func(r *rig) {
			r.env("CLAUDE_CONFIG_DIR", r.at("moved"))
			r.write("moved/settings.json", exclusiveSettings)
		}, Fail, "codehand uninstall claude-code"},
		"project": {func(r *rig) { r.write("ws/.claude/settings.json", exclusiveSettings) }, Fail,
			"codehand uninstall --project claude-code"},
		"switched off": {func(r *rig) {
			r.write("home/.claude/settings.json", exclusiveSettings)
			r.write("home/.claude.json", strings.Replace(entry(r), `"args"`, `"disabled": true, "args"`, 1))
		}, Fail, "codehand install claude-code"},
		"denied by a person": {func(r *rig) {
			r.write("home/.claude/settings.json", `{"permissions": {"deny": ["Read", "Edit", "Write", "Bash"]}}`)
		}, Note, "if you did not mean it"},
		"with the entry": {func(r *rig) {
			r.write("home/.claude/settings.json", exclusiveSettings)
			r.write("home/.claude.json", entry(r))
		}, "", ""},
		"with the entry of the project": {func(r *rig) {
			r.write("home/.claude/settings.json", exclusiveSettings)
			r.write("ws/.mcp.json", entry(r))
		}, "", ""},
		"with a local entry": {func(r *rig) {
			r.write("home/.claude/settings.json", exclusiveSettings)
			r.write("home/.claude.json", `{"projects": {"`+r.at("ws")+`": `+entry(r)+`}}`)
		}, "", ""},
		"with a local entry elsewhere": {func(r *rig) {
			r.write("home/.claude/settings.json", exclusiveSettings)
			r.write("home/.claude.json", `{"projects": {"/elsewhere": `+entry(r)+`}}`)
		}, Fail, "codehand install claude-code"},
		"one tool": {func(r *rig) {
			r.write("home/.claude/settings.json", `{"permissions": {"deny": ["Bash"]}}`)
		}, "", ""},
		"broken": {func(r *rig) { r.write("home/.claude/settings.json", `{"permissions": `) }, "", ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.prepare(r)
			text := r.clientsText()
			if c.level == "" {
				if strings.Contains(text, "denies Claude Code") {
					t.Errorf("%s", text)
				}
			} else if !strings.Contains(text, string(c.level)+" claude-code: ") || !strings.Contains(text, c.fix) ||
				!strings.Contains(text, "denies Claude Code") {
				t.Errorf("no %s with %q:\n%s", c.level, c.fix, text)
			}
		})
	}
}
