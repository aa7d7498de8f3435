package server

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/config"
	"codehand/tools/permission"
)

// The files of a shared list in the workspace could be changed by any tool, without its lock.
func TestSharedTasksInRoot(t *testing.T) {
	t.Parallel()
	f := start(t, setup{change: func(c *config.Config) {
		c.Tasks.Directory = filepath.Join(c.WorkDir, "list")
		c.Permissions.Mode = permission.Bypass
	}})
	call := func(tool, args, begins string) {
		t.Helper()
		if text, err := f.Call(tool, json.RawMessage(args)); err != nil || !strings.HasPrefix(text, begins) {
			t.Errorf("%s: %s, %v", tool, text, err)
		}
	}
	call("task_create", `{"subject":"one","description":"d"}`, "Task 1 created")
	call("write_file", `{"file_path":"list/2.json","content":"x"}`, "! PERMISSION_DENIED: ")
	call("run_shell", `{"command":"rm list/1.json"}`, "! PERMISSION_DENIED: ")
	call("task_list", `{}`, "1 [pending] one")
}
