package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"codehand/server/config"
	"codehand/tools/hooks"
)

// The configuration and the engine of hooks do not know each other, and each says what a hook may be. What one takes,
// the other takes.
func TestHooksMeanTheSame(t *testing.T) {
	t.Parallel()
	type hook struct {
		event, matcher, command string
		ms                      int
	}
	var all []hook
	for _, event := range []string{
		hooks.PreToolUse, hooks.PermissionRequest, hooks.PostToolUse, hooks.PostToolUseFailure, hooks.PermissionDenied, hooks.SessionStart, hooks.SessionEnd,
		hooks.SubagentStart, hooks.SubagentStop, hooks.FileChanged, "PreToolUze", "Stop", "Notification", "UserPromptSubmit", "PreCompact",
	} {
		all = append(all, hook{event, "", "guard", 1000})
	}
	for _, matcher := range []string{"", "*", "Bash", "Bash|Edit", "Bash, Edit", " ", ",", "|", "Bash(", "mcp__.*", "[", "a-b", "é", "(?P<x>a)", `\\d`, "(?=a)", "**"} {
		all = append(all, hook{hooks.PreToolUse, matcher, "guard", 1000})
	}
	for _, command := range []string{"guard", "/bin/guard", "./guard", "bin/guard", "", "..", "a b"} {
		all = append(all, hook{hooks.PreToolUse, "", command, 1000})
	}
	for _, ms := range []int{1, 60_000, 600_000, 600_001, -1} { // 0 means to the engine that no limit is set
		all = append(all, hook{hooks.PreToolUse, "", "guard", ms})
	}
	home := t.TempDir()
	file := filepath.Join(home, "config.toml")
	taken := 0
	for _, h := range all {
		must(t, os.WriteFile(file, fmt.Appendf(nil, "[[hooks.%s]]\nmatcher = %q\ncommand = [%q]\ntimeout_ms = %d\n", h.event, h.matcher, h.command, h.ms), 0o600))
		c, _, err := config.Load(config.Sources{Home: home, WorkDir: home, UserFile: file})
		_, refused := hooks.New(hooks.Options{Hooks: []hooks.Hook{{
			Event: h.event, Matcher: h.matcher, Command: []string{h.command}, Timeout: time.Duration(h.ms) * time.Millisecond, Origin: "x:1",
		}}})
		if (err == nil) != (refused == nil) {
			t.Errorf("%+v: the configuration says %v, the engine %v", h, err, refused)
		}
		if err == nil {
			taken += len(c.Hooks.Entries)
		}
	}
	if taken < 25 || taken > len(all)-10 {
		t.Errorf("%d of %d are taken", taken, len(all))
	}
	must(t, os.WriteFile(file, []byte("[[hooks.PreToolUse]]\ncommand = [\"guard\"]\n"), 0o600))
	c, _, err := config.Load(config.Sources{Home: home, WorkDir: home, UserFile: file})
	if must(t, err); c.Hooks.Entries[0].Timeout != hooks.DefaultTimeout {
		t.Errorf("who says nothing gets %v, and from the engine %v", c.Hooks.Entries[0].Timeout, hooks.DefaultTimeout)
	}
}
