package blackbox

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// The server was killed while a command ran: nothing looked at what it had made under protected names, or told of it,
// and the person's git obeyed that.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	p := gitWork(t)
	p.lay("a/.husky/there", "")
	must(t, syscall.Mkfifo(filepath.Join(p.root, "wrote"), 0o600))
	p.lay("a/job.sh", "git init -q sub; echo evil >sub/.git/hooks/post-commit; mkdir deep; echo evil >deep/.envrc\n"+
		"echo >wrote; read x <wrote\n")
	text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "bash job.sh", "run_in_background", true))
	if replaytest.JobID.FindString(text) == "" {
		t.Fatal(text)
	}
	_, err := os.ReadFile(filepath.Join(p.root, "wrote")) // waits for the job
	must(t, err)
	other := p.person() // while the first one lives there is nothing to tell
	run := func() string {
		t.Helper()
		a := other.Call("run_shell", replaytest.AsJSON(t, "command", "touch x"), replaytest.Never(t))
		if a.Failed {
			t.Fatal(a.Text)
		}
		return a.Text
	}
	if said := run(); strings.Contains(said, "killed") {
		t.Errorf("the server runs, and another one says %s", said)
	}
	must(t, p.Cmd.Process.Kill())
	_ = p.Cmd.Wait() // it was killed
	said := run()
	if !strings.Contains(said, "codehand was killed while a command ran here") ||
		!strings.Contains(said, "deep/.envrc") || !strings.Contains(said, "sub/.git/hooks") || strings.Contains(said, ".husky") {
		t.Errorf("after the kill it says %s", said)
	}
	if said := run(); strings.Contains(said, "killed") {
		t.Errorf("it is said twice: %s", said)
	}
	if notes, err := os.ReadDir(p.in("state/codehand/running")); err != nil || len(notes) > 0 {
		t.Errorf("notes stay: %v, %v", notes, err)
	}
}
