package hooks

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/permission"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// hang is the time after which a condition that does not come true is a failure.
const hang = 60 * time.Second

// reached polls until the condition holds; false: it never did.
func reached(condition func() bool) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	late := time.After(hang)
	for !condition() {
		select {
		case <-late:
			return false
		case <-tick.C:
		}
	}
	return true
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// interpreter finds bash or python3. CI has both.
func interpreter(t *testing.T, name string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("hook scripts need a system with bash")
	}
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} { // not a shim of a version manager, which is slow
		if path := filepath.Join(dir, name); exec.Command(path, "--version").Run() == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("needs %s: .ci/run installs it", name)
	default:
		t.Skipf("needs %s: install it", name)
	}
	return path
}

// script writes a script and returns the command that runs it.
func script(t *testing.T, interpreterName, text string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return []string{interpreter(t, interpreterName), path}
}

// A lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newRunner makes a Runner that is closed with the test, and its log.
func newRunner(t *testing.T, o Options) (*Runner, *lockedBuffer) {
	t.Helper()
	log := &lockedBuffer{}
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	r, err := New(o)
	must(t, err)
	t.Cleanup(r.Close)
	return r, log
}

// shellEvent is a call of run_shell in a project of its own.
func shellEvent(t *testing.T, command string) Event {
	t.Helper()
	root := leaktest.Dir(t)
	input, err := line(map[string]string{"command": command})
	must(t, err)
	return Event{
		Session: "p:session", Place: Place{Roots: []string{root}, Cwd: root}, Mode: permission.AcceptEdits,
		Call: "call1", Tool: "run_shell", Aliases: []string{"Bash"}, Input: bytes.TrimSpace(input),
		Request: permission.Request{
			Tool: "run_shell", Aliases: []string{"Bash"}, Family: permission.FamilyBash, Input: json.RawMessage(input), Cwd: root, Own: permission.Allow,
			Targets: []permission.Target{{Kind: permission.Command, Value: command}},
		},
	}
}

func has(t *testing.T, what, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%s is %q, want %q in it", what, text, want)
	}
}
