package server

import (
	"codehand/server/config"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkillsDirInRoot: no tool changes a directory of skills that the operator names, wherever it lies.
func TestSkillsDirInRoot(t *testing.T) {
	t.Parallel()
	f := start(t, setup{settings: map[string]string{"skills.dirs": "team", "permissions.mode": "bypassPermissions"}, change: func(c *config.Config) {
		must(t, os.MkdirAll(filepath.Join(c.WorkDir, "team", "a"), 0o700))
		must(t, os.WriteFile(filepath.Join(c.WorkDir, "team", "a", "SKILL.md"), []byte("Do it."), 0o600))
	}})
	for tool, args := range map[string]string{
		"write_file": `{"file_path":"team/b/SKILL.md","content":"x"}`, "run_shell": `{"command":"rm -r team/a"}`,
	} {
		text, err := f.Call(tool, json.RawMessage(args))
		if err != nil || !strings.HasPrefix(text, "! PERMISSION_DENIED: ") {
			t.Errorf("%s: %s, %v", tool, text, err)
		}
	}
	if text, err := f.Call("skill", json.RawMessage(`{"skill":"a"}`)); err != nil || !strings.Contains(text, "Do it.") {
		t.Errorf("skill: %s, %v", text, err)
	}
}
