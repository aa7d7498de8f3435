package blackbox

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// crashes is a script that has a key in its environment and crashes, in a process of its own, where a core may be left.
const crashes = `#!/bin/bash
cat > /dev/null
echo "limit $(ulimit -Hc), key ${OTHER_KEY:-none}"
bash -c 'kill -SEGV $$' 2>&1
echo "status $?"
kill -SEGV $$
`

// TestNoCores: a crash leaves no core where limits and the machine would have one: not of the program of agent.command,
// which has a key in its environment, not of a command, and not of codehand itself, which reads keys.
func TestNoCores(t *testing.T) {
	t.Parallel()
	control := exec.Command("bash", "-c", "ulimit -c unlimited; kill -SEGV $$")
	control.Dir = t.TempDir()
	control.Stderr = io.Discard
	_ = control.Run() // it was killed
	if !control.ProcessState.Sys().(syscall.WaitStatus).CoreDump() {
		t.Log("this machine dumps no cores, so that there are none shows nothing here")
	}
	work, base := leaktest.Dir(t), leaktest.Dir(t)
	program, key := filepath.Join(base, "other"), filepath.Join(base, "key")
	replaytest.WriteFile(t, program, []byte(crashes))
	must(t, os.Chmod(program, 0o755))
	replaytest.WriteFile(t, key, []byte(agentKey+"\n"))
	cmd := exec.Command("bash", "-c", `ulimit -c unlimited; exec "$@"`, "bash", replaytest.Program(t), "stdio", work, "--agent-backend=command",
		"--agent-command-argv="+program, "--agent-command-env-allow=OTHER_KEY", "--permissions-allow=Agent",
		"--agent-api-provider=openai", "--agent-api-model=m", "--agent-api-base-url=http://127.0.0.1:9", "--agent-api-key-env=MODEL_KEY")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + base, "XDG_STATE_HOME=" + base, "PATH=" + os.Getenv("PATH"), "OTHER_KEY=" + agentKey, "MODEL_KEY=" + agentKey, "GOTRACEBACK=crash"}
	s := replaytest.Speak(t, cmd, "agent-test", false)
	text := asks(t, s, "agent", map[string]any{"prompt": "crash"})
	// It has the key, and its report has not.
	if !strings.HasPrefix(text, "AGENT_FAILED: other ended with exit 139 (SIGSEGV)") || !strings.Contains(text, "\nlimit 0, key [") ||
		!strings.Contains(text, "\nstatus 139") || strings.Contains(text, "(core dumped)") || strings.Contains(text, agentKey) {
		t.Errorf("the other agent: %s", text)
	}
	text = asks(t, s, "run_shell", map[string]any{"command": `echo "limit $(ulimit -Hc), key ${MODEL_KEY:-none}"; bash -c 'kill -SEGV $$' 2>&1; echo "status $?"`})
	if !strings.HasPrefix(text, "limit 0, key none\n") || !strings.Contains(text, "\nstatus 139") || strings.Contains(text, "(core dumped)") {
		t.Errorf("a command: %s", text)
	}
	must(t, s.Cmd.Process.Signal(syscall.SIGSEGV))
	for range s.Lines {
	}
	_ = s.Cmd.Wait()
	if ended := s.Cmd.ProcessState.Sys().(syscall.WaitStatus); !ended.Signaled() || ended.CoreDump() {
		t.Errorf("codehand: signaled %t, a core: %t", ended.Signaled(), ended.CoreDump())
	}
	call := exec.Command("bash", "-c", `ulimit -c unlimited; exec "$@"`, "bash", replaytest.Program(t), "call", "run_shell", `command=kill -SEGV $(ps -o ppid= -p $PPID)`)
	call.Dir, call.Env = work, append(cmd.Env, "CODEHAND_SANDBOX_POLICY=off")
	_ = call.Run() // it was killed
	if ended := call.ProcessState.Sys().(syscall.WaitStatus); !ended.Signaled() || ended.CoreDump() {
		t.Errorf("codehand call: signaled %t, a core: %t", ended.Signaled(), ended.CoreDump())
	}
	for _, dir := range []string{work, base} {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if b, err := os.ReadFile(path); err == nil && (bytes.HasPrefix(b, []byte("\x7fELF")) || bytes.Contains(b, []byte(agentKey)) && path != key) {
				t.Errorf("%s is a core, or has the key", path)
			}
			return nil
		})
	}
}
