package server

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/audit"
	"codehand/server/replaytest"
	"codehand/tools/bash"
)

// audited starts a server over a new workspace that writes an audit log.
func audited(t *testing.T, o audit.Options, s setup) (*fixture, *audit.Log) {
	t.Helper()
	o.Replica = "r4k2"
	a, err := audit.Open(o)
	must(t, err)
	f := start(t, s)
	f.server.pipe.Audit, f.server.pipe.AuditReady = a.Call, a.Failed
	t.Cleanup(func() { _ = a.Close() }) // a test that looks at the log has closed it
	return f, a
}

// TestAuditIsClean plays every tool, allowed and refused, with secrets in arguments, contents and environment: every
// call is in the log, the chain is whole, and no secret is in it.
func TestAuditIsClean(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a Unix shell")
	}
	t.Setenv("DEPLOY_PASSPHRASE", replaytest.Secrets[len(replaytest.Secrets)-1].Secret) // so not in parallel
	for _, digest := range []bool{false, true} {
		t.Run(fmt.Sprint("digest: ", digest), func(t *testing.T) {
			dir := auditDir(t)
			f, a := audited(t, audit.Options{Dir: dir, Sync: -1, Digest: digest}, setup{settings: map[string]string{
				"shell.env_allow": "DEPLOY_PASSPHRASE", "permissions.deny": "Edit(/denied/**)",
			}})
			calls, changes := 0, 0
			call := func(name string, readOnly bool, pairs ...any) string {
				t.Helper()
				text := f.Must(t, name, replaytest.AsJSON(t, pairs...))
				if strings.HasPrefix(text, "!!") {
					t.Fatalf("%s %v: %s", name, pairs, text)
				}
				if calls++; !readOnly && !slices.ContainsFunc([]string{"INPUT_INVALID", "PERMISSION_DENIED", "OUTSIDE_ROOTS"}, func(code string) bool {
					return strings.HasPrefix(text, "! "+code)
				}) {
					changes++
				}
				return text
			}
			for i, p := range leaktest.Some(4, replaytest.Secrets) {
				command := fmt.Sprintf(p.Command, p.Secret)
				call("run_shell", bash.Analyze(command, nil).Class == bash.ReadOnly, "command", command, "description", "use "+p.Secret)
				if digest {
					continue // only commands differ
				}
				path := filepath.Join(f.work, fmt.Sprint("f", i))
				call("write_file", false, "file_path", path, "content", "key "+p.Secret+"\n")
				if got := call("read_file", true, "file_path", path); !strings.Contains(got, p.Secret) {
					t.Fatalf("the secret is not in the file: %s", got)
				}
				call("edit_file", false, "file_path", path, "old_string", p.Secret, "new_string", p.Secret+p.Secret)
				call("multi_edit", false, "file_path", path, "edits", []any{map[string]any{"old_string": p.Secret + p.Secret, "new_string": p.Secret}})
				call("grep_search", true, "pattern", "password = "+p.Secret, "output_mode", "content")
				call("list_files", true, "pattern", "*", "path", f.work)
				call("run_shell", true, "command", "cat '"+path+"'")
				call("job_output", true, "job_id", p.Secret, "filter", p.Secret)
				call("job_stop", false, "job_id", p.Secret)
				call("edit_file", false, "file_path", path, "old_string", p.Secret+"no", "new_string", p.Secret)
				call("edit_file", true, "file_path", path, "old_str", p.Secret, p.Secret, p.Secret)
				call("write_file", false, "file_path", "/denied/x", "content", p.Secret)
			}
			if got := call("run_shell", false, "command", "env"); !strings.Contains(got, replaytest.Secrets[len(replaytest.Secrets)-1].Secret) {
				t.Errorf("the secret is not in the environment: %s", got)
			}
			must(t, a.Close())

			counts := map[string]int{}
			for _, m := range replaytest.AuditLines(t, dir) {
				counts[m["ev"].(string)]++
			}
			if counts["call.done"] != calls || counts["call.start"] != changes {
				t.Errorf("%d calls, %d of them changes; in the log: %v", calls, changes, counts)
			}
			mustCheck(t, dir, calls+changes+2)
			log, err := os.ReadFile(filepath.Join(dir, "audit-r4k2.jsonl"))
			must(t, err)
			for _, p := range replaytest.Secrets {
				if at := strings.Index(string(log), p.Secret); at >= 0 {
					t.Errorf("%q is in the log: …%s…", p.Secret, log[max(0, at-150):min(len(log), at+50)])
				}
			}
			if strings.Contains(string(log), "key ") {
				t.Error("contents are in the log")
			}
			if strings.Contains(string(log), `"sum":"command=echo `) == digest || strings.Contains(string(log), `"sum":"command=sha256:`) != digest {
				t.Error("commands are not written as they should")
			}
		})
	}
}

// What a call did is in its line: the files with their hashes, the command with its exit, and who, why and how.
func TestAuditOfCalls(t *testing.T) {
	t.Parallel()
	dir := auditDir(t)
	f, a := audited(t, audit.Options{Dir: dir, Sync: -1}, setup{client: "claude-code"})
	path := filepath.Join(f.work, "a.txt")
	f.Must(t, "Write", replaytest.AsJSON(t, "file_path", path, "content", "one\n"))
	f.Must(t, "run_shell", replaytest.AsJSON(t, "command", "echo two > '"+path+"'; exit 3"))
	f.Must(t, "read_file", replaytest.AsJSON(t, "file_path", filepath.Join(f.work, "missing")))
	must(t, a.Close())
	lines := replaytest.AuditLines(t, dir)
	if got := replaytest.AuditEvents(t, dir); got != "serve.start call.start call.done call.start call.done call.done serve.stop" {
		t.Fatal(got)
	}
	for _, c := range []struct {
		line int
		want map[string]any
	}{
		{1, map[string]any{
			"p": "local", "client": "claude-code/1", "tool": "write_file", "via": "Write", "sum": "file_path=" + path,
			"dec": "ask.allow", "by": "client", "rule": "", "mode": "default", "try": 1.0,
		}},
		{2, map[string]any{"tool": "write_file", "ok": true, "code": "", "cancelled": false, "exit": nil, "sandbox": nil, "files": []any{
			map[string]any{"path": path, "op": "create", "before": "", "after": "sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806"},
		}}},
		{3, map[string]any{"tool": "run_shell", "sum": "command=echo two > '" + path + "'; exit 3"}},
		{4, map[string]any{"ok": false, "code": "COMMAND_FAILED", "exit": 3.0, "sandbox": "1", "files": []any{
			map[string]any{"path": path, "op": "shell", "did": "change", "before": "sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806", "after": "sha256:27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"},
		}}},
		{5, map[string]any{"tool": "read_file", "ok": false, "code": "FILE_NOT_FOUND", "dec": "allow", "by": "mode", "p": "local", "client": "claude-code/1"}},
	} {
		for name, want := range c.want {
			if got, ok := lines[c.line][name]; !ok || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("line %d: %s is %v, want %v", c.line, name, got, want)
			}
		}
	}
	if one, two := lines[1]["call"], lines[2]["call"]; one != two || one == lines[3]["call"] {
		t.Errorf("calls %v, %v, %v", one, two, lines[3]["call"])
	}
	if _, twice := lines[2]["client"]; twice {
		t.Error("who called is said twice")
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range lines[3] {
			if !yield(name) {
				return
			}
		}
	})
	want := "args auth by call client dec dir era ev ip mode p prev rep rule seq sk sum t tool tr trace try v via"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("fields of call.start:\n got %s\nwant %s", got, want)
	}
}
