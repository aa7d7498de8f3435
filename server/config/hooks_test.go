package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHooks(t *testing.T) {
	w := newWorld(t)
	file := w.user(t, `
[hooks]
tool_names = "codehand"
fail_closed = true
[[hooks.PreToolUse]]
matcher = "Bash|Edit"
if = "Bash(git push *)"
command = ["/usr/local/bin/guard", "-q"]
timeout_ms = 5000

[[hooks.PreToolUse]]
command = ["~/bin/second"]
async = true
[[hooks.SessionStart]]
matcher = "*"
command = ["notify"]
[log]
level = "info"
`)
	c, warnings := w.load(t)
	if len(warnings) != 0 || c.Hooks.ToolNames != "codehand" || !c.Hooks.FailClosed || c.Hooks.TrustProject {
		t.Errorf("%v %+v", warnings, c.Hooks)
	}
	var got []string
	for _, h := range c.Hooks.Entries {
		got = append(got, fmt.Sprintf("%s %q %q %s %v %v", h.Event, h.Matcher, h.Command, h.Timeout, h.Async, strings.TrimPrefix(h.Origin, file)))
	}
	want := []string{
		`PreToolUse "Bash|Edit" ["/usr/local/bin/guard" "-q"] 5s false :5:3`,
		`PreToolUse "" ["` + w.path("home/bin/second") + `"] 1m0s true :11:3`,
		`SessionStart "*" ["notify"] 1m0s false :14:3`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if rule := c.Hooks.Entries[0].If; rule.Text != "Bash(git push *)" || rule.Origin != file+":7:1" {
		t.Errorf("if: %+v", rule)
	}
	other := c
	other.Hooks.Entries = slices.Clone(c.Hooks.Entries)
	if keys := c.Changed(other); len(keys) != 0 {
		t.Errorf("changed: %v", keys)
	}
	// A comment above a hook was told as a change of it, which needs a new start.
	other.Hooks.Entries[0].Origin, other.Hooks.Entries[0].If.Origin = "x:8:3", "x:10:1"
	if keys := c.Changed(other); len(keys) != 0 {
		t.Errorf("changed by another line: %v", keys)
	}
	other.Hooks.Entries[0].Timeout++
	if keys := c.Changed(other); !slices.Equal(keys, []string{"hooks"}) {
		t.Errorf("changed: %v", keys)
	}
}

// TOML has more than one way to write the same tables.
func TestHooksInline(t *testing.T) {
	for _, text := range []string{
		"hooks.PreToolUse = [{command = ['/a'], timeout_ms = 1}, {command = ['/b']}]\n",
		"[hooks]\nPreToolUse = [\n{command = ['/a'], timeout_ms = 1},\n{command = ['/b']}]\n",
		"hooks = {PreToolUse = [{command = ['/a'], timeout_ms = 1}, {command = ['/b']}]}\n",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\ntimeout_ms = 1\n[[hooks.PostToolUse]]\ncommand = ['/c']\n[[hooks.PreToolUse]]\ncommand = ['/b']\n",
		"hooks.PreToolUse = [{command = ['/a'], timeout_ms = 1}, {command = ['/b']}]\nhooks.PostToolUse = []\n",
	} {
		w := newWorld(t)
		w.user(t, text)
		c, _ := w.load(t)
		h := slices.DeleteFunc(c.Hooks.Entries, func(h Hook) bool { return h.Event != "PreToolUse" })
		if len(h) != 2 || h[0].Command[0] != "/a" || h[0].Timeout != time.Millisecond || h[1].Command[0] != "/b" {
			t.Errorf("%s: got %+v", text, h)
		}
	}
}

// A guard with a mistake in it would be no guard.
func TestHooksRefused(t *testing.T) {
	for text, want := range map[string]string{
		"[[hooks.PreTooluse]]\ncommand = ['/a']\n":                                          `:1:3: unknown event "PreTooluse"; the events are PreToolUse, `,
		"[[hooks.PreToolUse]]\nmatcher = 'Bash'\n":                                          ":1:3: hooks.PreToolUse: needs command",
		"[[hooks.PreToolUse]]\ncommand = []\n":                                              ":2:1: hooks.PreToolUse.command: must name a program",
		"[[hooks.PreToolUse]]\ncommand = 'guard'\n":                                         ":2:1: hooks.PreToolUse.command: must be a list of texts",
		"[[hooks.PreToolUse]]\ncommand = ['./guard']\n":                                     "./guard: give an absolute path, or a name that is in PATH",
		"[[hooks.PreToolUse]]\ncommand = ['a', \"x\\u0000\"]\n":                             "NUL",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\ntimeout_ms = 0\n":                          ":3:1: hooks.PreToolUse.timeout_ms: must be a whole number from 1 to 600000",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\ntimeout_ms = 600001\n":                     ":3:1: hooks.PreToolUse.timeout_ms",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\ntimeout = 3\n":                             `:3:1: unknown key "hooks.PreToolUse.timeout"`,
		"[[hooks.PreToolUse]]\ncommand = ['/a']\nasync = 1\n":                               ":3:1: hooks.PreToolUse.async: must be true or false",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\nmatcher = '(['\n":                          ":3:1: hooks.PreToolUse.matcher: error parsing regexp",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\nmatcher = ' | '\n":                         "names no tool",
		"[[hooks.PreToolUse]]\ncommand = ['/a']\nif = 'Read('\n":                            `:3:1: hooks.PreToolUse.if: rule "Read(": `,
		"[[hooks.PreToolUse]]\ncommand = ['/a']\nhooks.type = 'x'\n":                        `:3:1: unknown key "hooks.PreToolUse.hooks"`,
		"[[hooks.PreToolUse]]\ncommand = ['/a']\n[hooks.PreToolUse.more]\nx = 1\n":          `unknown key "hooks.PreToolUse.more"`,
		"[[hooks.PreToolUse]]\nmatcher = 'Bash'\nhooks = [{type='command', command='x'}]\n": `:3:1: unknown key "hooks.PreToolUse.hooks"`,
		"[hooks.PreToolUse]\ncommand = ['/a']\n":                                            "written as [[hooks.PreToolUse]]",
		"hooks.PreToolUse = 3\n":                                                            ":1:1: hooks.PreToolUse: must be tables",
		"hooks.PreToolUse = ['x']\n":                                                        ":1:1: hooks.PreToolUse: must be tables",
		"hooks.PreToolUse = [\n{command = ['/a'],\n matchr = 'x'}]\n":                       `:3:2: unknown key "hooks.PreToolUse.matchr"`,
		"hooks.tool_names = 'ours'\n":                                                       "hooks.tool_names: must be one of claude, codehand",
		"[[hooks.pretooluse]]\n":                                                            `unknown key "hooks.pretooluse"`,
		"permissions.classifier = ['bin/judge']\n":                                          "permissions.classifier: bin/judge: give an absolute path",
		"permissions.protect = ['/etc/x', 'ok']\n":                                          `:1:24: permissions.protect: protected name "/etc/x": `,
		"permissions.unprotect = ['.npmrc',\n'.nothing']\n":                                 `:2:1: permissions.unprotect: ".nothing" is not one of the names`,
		"permissions.ask_timeout_ms = 10\n":                                                 "must be a whole number from 1000 to 600000",
		"permissions.ask_timeout_ms = 600001\n":                                             "must be a whole number from 1000 to 600000", // no question is kept for longer
		"permissions.allow = ['mcp__*']\n":                                                  "permissions.allow: rule ",
		"permissions.ask = ['Read(']\n":                                                     "permissions.ask: rule ",
		"permissions.additional_dirs = ['/no/such']\n":                                      ":1:1: permissions.additional_dirs: /no/such does not exist",
		"permissions.additional_dirs = ['rel']\n":                                           "must be an absolute path",
		"plan.directory = '/no/root'\n":                                                     ":1:1: plan.directory: /no/root must lie inside a root",
		"results.keep_days = 0\n":                                                           "must be a whole number from 1 to 3650",
	} {
		w := newWorld(t)
		file := w.user(t, text)
		if got := w.refused(t).Error(); !strings.Contains(got, want) || !strings.Contains(got, file) {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// A project's hooks run only where the user's file says so.
func TestHooksOfProjects(t *testing.T) {
	w := newWorld(t)
	project := w.project(t, "hooks.trust_project = true\n[[hooks.PreToolUse]]\ncommand = ['/a']\n[[hooks.Nope]]\n")
	c, warnings := w.load(t)
	if len(c.Hooks.Entries) != 0 || len(warnings) != 1 || !strings.Contains(warnings[0].Text, "hooks.trust_project (1:1), hooks.PreToolUse (2:3), hooks.Nope (4:3)") {
		t.Errorf("%+v, warnings %v", c.Hooks, warnings)
	}
	w.user(t, "hooks.trust_project = true\n[[hooks.PreToolUse]]\ncommand = ['/b']\n")
	if got := w.refused(t).Error(); !strings.Contains(got, project+`:4:3: unknown event "Nope"`) {
		t.Error(got)
	}
	w.project(t, "[[hooks.PreToolUse]]\ncommand = ['/a']\n")
	c, warnings = w.load(t)
	if len(c.Hooks.Entries) != 2 || c.Hooks.Entries[1].Origin != project+":1:3" || c.Hooks.Entries[0].Project || !c.Hooks.Entries[1].Project || len(warnings) != 0 {
		t.Errorf("%+v, warnings %v", c.Hooks, warnings)
	}
}
