package blackbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// The built program over stdio: a legacy client's roots narrow its session, down to nothing, and no later answer gives back
// more than the client and the operator have in common.
func TestClientRootsBinary(t *testing.T) {
	t.Parallel()
	work, home, outside := leaktest.Dir(t), leaktest.Dir(t), leaktest.Dir(t)
	replaytest.PlantRoots(t, work)
	must(t, os.WriteFile(filepath.Join(outside, "f.txt"), []byte("content\n"), 0o600))
	alias := filepath.Join(home, "alias")
	must(t, os.Symlink(work, alias))
	w := rootedWire(t, work, home)
	answer, asked := replaytest.RootsAnswer(), 0
	w.Caps = map[string]any{"roots": map[string]any{"listChanged": true}}
	w.Tap = func(line []byte) {
		var m replaytest.Reply
		if json.Unmarshal(line, &m) == nil && m.Method == "roots/list" {
			asked++
			must(t, w.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer)))
		}
	}
	must(t, w.Hello())

	calls := 0
	for _, step := range []struct {
		roots   []string
		a, b    bool // reached
		refusal string
	}{
		{nil, true, true, ""},
		{[]string{"file://" + work + "/a"}, true, false, "outside the allowed directories: " + work + "/a."},
		{nil, true, false, "outside the allowed directories: " + work + "/a."},
		{[]string{"file://" + outside}, false, false, "do not overlap"},
		{nil, false, false, "do not overlap"},
		{[]string{"https://example.org/" + work}, false, false, "do not overlap"},
		{[]string{"file://" + outside, "file://" + alias + "/b"}, false, true, "outside the allowed directories: " + work + "/b."},
		{[]string{"file:///"}, true, true, ""},
	} {
		if calls > 0 {
			answer = replaytest.RootsAnswer(step.roots...)
			must(t, w.Send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))
		}
		for file, reached := range map[string]bool{filepath.Join(work, "a/f.txt"): step.a, filepath.Join(work, "b/f.txt"): step.b, filepath.Join(outside, "f.txt"): false} {
			text := w.Must(t, "grep_search", replaytest.AsJSON(t, "pattern", "content", "path", file, "output_mode", "content"))
			calls++
			if got := !strings.HasPrefix(text, "! "); got != reached || !reached && !strings.HasPrefix(text, "! OUTSIDE_ROOTS") {
				t.Errorf("%q: %s: %s", step.roots, file, text)
			}
			if !reached && file != filepath.Join(outside, "f.txt") && !strings.Contains(text, step.refusal) {
				t.Errorf("%q: %s: %s", step.roots, file, text)
			}
		}
	}
	t.Logf("%d calls under 8 answers to roots/list: none reached more than both sides have in common", calls)
	if asked != 8 {
		t.Errorf("asked %d times", asked)
	}
}

// rootedWire starts the built program over work. The caller says hello.
func rootedWire(t *testing.T, work, home string) *replaytest.Wire {
	t.Helper()
	path := replaytest.Program(t)
	cmd := exec.Command(path, "stdio", "--permissions-mode=acceptEdits", work)
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home}
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, leaktest.Start(cmd))
	w := replaytest.NewWire(in, out, "mcp-inspector", false)
	t.Cleanup(func() {
		_ = in.Close()
		for range w.Lines { // to the end of its output, as Wait demands
		}
		must(t, cmd.Wait())
	})
	return w
}
