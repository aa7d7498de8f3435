package replaytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// FlagOf is the flag of a setting, without its dashes.
func FlagOf(key string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}

// Placed fills in the workspace, which session files call $WORK.
func Placed(settings map[string]string, work string) map[string]string {
	all := map[string]string{}
	for k, v := range settings {
		all[k] = strings.ReplaceAll(v, "$WORK", work)
	}
	return all
}

// Handle names the session of a replay, so that its directory has the same name in every run.
const Handle = "session-file"

// A Spawned is the built program with one client on it.
type Spawned struct {
	*Wire
	Cmd    *exec.Cmd
	State  string
	Stderr *strings.Builder
}

// Spawn starts the program in work and says hello. When the test ends, the program must end by itself with code 0.
func Spawn(t testing.TB, path, work, client string, modern bool, settings map[string]string) *Spawned {
	t.Helper()
	base := leaktest.Dir(t)
	args := []string{"stdio", work}
	for k, v := range Placed(settings, work) {
		args = append(args, "--"+FlagOf(k)+"="+v)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base,
		"CODEHAND_SESSION=" + Handle}
	p := Speak(t, cmd, client, modern)
	p.State = filepath.Join(base, "codehand")
	return p
}

// Speak starts a command that is the program and says hello. When the test ends, it must end by itself with code 0.
func Speak(t testing.TB, cmd *exec.Cmd, client string, modern bool) *Spawned {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &Spawned{Cmd: cmd, Stderr: &strings.Builder{}}
	cmd.Stderr = p.Stderr
	if err := leaktest.Start(cmd); err != nil {
		t.Fatal(err)
	}
	p.Wire = NewWire(in, out, client, modern)
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return // the test waited itself
		}
		_ = in.Close()
		for range p.Lines { // to the end of its output, as Wait demands
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v; stderr:\n%s", err, p.Stderr)
		}
	})
	if err := p.Hello(); err != nil {
		t.Fatalf("hello: %v; stderr:\n%s", err, p.Stderr)
	}
	return p
}
