package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/server/audit"
	"codehand/server/replaytest"
)

// A person at a desk can have a record, too: of every call, also across kill -9, and a broken chain shows.
func TestAuditOnStdio(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	dir, work := filepath.Join(t.TempDir(), "audit"), t.TempDir()
	p := replaytest.Spawn(t, path, work, "claude-code", false, map[string]string{"audit.dir": dir})
	name := filepath.Join(work, "a.txt")
	p.Must(t, "write_file", replaytest.AsJSON(t, "file_path", name, "content", "one\n"))
	p.Must(t, "read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, "missing")))
	must(t, p.Cmd.Process.Kill())
	_ = p.Cmd.Wait() // it was killed
	if n, err := audit.Check(dir); err != nil || n != 4 {
		t.Errorf("%d lines, %v", n, err)
	}
	var events []string
	for _, m := range replaytest.AuditLines(t, dir) {
		events = append(events, m["ev"].(string))
	}
	if got := strings.Join(events, " "); got != "serve.start call.start call.done call.done" {
		t.Error(got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	must(t, err)
	log := files[0]
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log: %v, %v", info.Mode(), err)
	}
	b, err := os.ReadFile(log)
	must(t, err)
	must(t, os.WriteFile(log, []byte(strings.Replace(string(b), `"op":"create"`, `"op":"delete"`, 1)), 0o600))
	if _, err := audit.Check(dir); err == nil {
		t.Error("a changed line was not found")
	}

	p = replaytest.Spawn(t, path, work, "claude-code", false, nil)
	p.Must(t, "read_file", replaytest.AsJSON(t, "file_path", name))
	if _, err := os.Stat(filepath.Join(p.State, "audit")); !os.IsNotExist(err) {
		t.Errorf("nobody asked for a record: %v", err)
	}
}

// Standard output belongs to the protocol, and a directory that others may write to is no evidence.
func TestAuditOnStdioRefused(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	open := t.TempDir()
	must(t, os.Chmod(open, 0o777))
	for dir, want := range map[string]string{"-": "standard output", open: "chmod 700"} {
		cmd := exec.Command(path, "stdio", t.TempDir(), "--audit-dir="+dir)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 3 || !strings.Contains(string(out), want) {
			t.Errorf("--audit-dir=%s: %v\n%s", dir, err, out)
		}
	}
}
