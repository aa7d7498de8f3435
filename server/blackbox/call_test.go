package blackbox

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestThroughInProcess: `codehand call` and `codehand permissions check` follow call_tool.
func TestThroughInProcess(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	work := leaktest.Dir(t)
	run := func(args ...string) string {
		cmd := exec.Command(path, append(args, "--permissions-deny=Bash(git push *)", "--state-dir="+filepath.Join(t.TempDir(), "state"))...)
		cmd.Dir, cmd.Env = work, []string{"HOME=" + t.TempDir(), "PATH=/bin:/usr/bin", "XDG_STATE_HOME=" + t.TempDir()}
		out, _ := cmd.CombinedOutput() // the text says what it is
		return string(out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "call_tool", "name=run_shell", `arguments:={"command":"echo hi"}`}, "hi\n"},
		{[]string{"call", "call_tool", "name=Bash", `arguments:={"command":"git push origin"}`}, "PERMISSION_DENIED: Permission denied: run_shell: rule Bash(git push *)"},
		{[]string{"call", "call_tool", "name=no_such_tool", `arguments:={}`}, "UNKNOWN_TOOL: Unknown tool: no_such_tool."},
		{[]string{"permissions", "check", "call_tool", "name=Bash", `arguments:={"command":"git push origin"}`}, "deny"},
		{[]string{"permissions", "check", "call_tool", "name=Read", `arguments:={"file_path":"a"}`}, "allow"},
		{[]string{"permissions", "check", "call_tool", "name=no_such_tool", `arguments:={}`}, "Unknown tool: no_such_tool."},
	} {
		if got := run(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%v: %s", c.args, got)
		}
	}
}
