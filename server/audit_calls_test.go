package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codehand/tools/permission"
)

// audited starts a server over a new workspace that writes an audit log.
func audited(t *testing.T, o auditOptions, s setup) (*fixture, *auditLog) {
	t.Helper()
	o.replica = "r4k2"
	a, err := openAudit(o)
	must(t, err)
	f := start(t, s)
	f.server.pipe.Audit, f.server.pipe.AuditReady = a.call, a.failed
	t.Cleanup(func() { _ = a.close() }) // a test that looks at the log has closed it
	return f, a
}

// asJSON is a JSON object of names and values.
func asJSON(t *testing.T, pairs ...any) string {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	must(t, err)
	return string(b)
}

// planted are secrets of 30 kinds, and how each comes into a command line. The last ones have no form that gives them
// away, only a name.
var planted = []struct{ secret, command string }{
	{"AKIAZQ3DGU5K7XEXAMPL", "aws configure set x %s"},
	{"wJalrXUtnFEMIb7MDENGcbPxRfiCYEXAMPLEKEY1", "aws_secret_access_key=%s true"},
	{"ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", "echo %s"},
	{"github_pat_11ABCDEFG0abcdefghijklmnop", "git clone https://x:%s@github.com/a/b"},
	{"glpat-abcdefghij0123456789", "echo %s"},
	{"xoxb-123456789012-abcdefghijkl", "echo %s"},
	{"T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX", "curl https://hooks.slack.com/services/%s"},
	{"sk_live_abcdefghijklmnop0123", "echo %s"},
	{"AIzaSyA1234567890abcdefghijklmnopqrstuv", "echo %s"},
	{"sk-proj-abcdefghij0123456789abcdef", "echo '%s'"},
	{"sk-ant-api03-abcdefghij0123456789", "echo \"%s\""},
	{"npm_abcdefghij0123456789abcdefghij012345", "echo %s"},
	{"pypi-AgEIcHlwaS5vcmcCJDEyMzQ1Njc4", "echo %s"},
	{"dckr_pat_abcdefghij0123456789ab", "echo %s | cat"},
	{"hf_abcdefghijABCDEFGHIJ0123456789abcd", "echo %s"},
	{"SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789", "echo %s"},
	{"dop_v1_0123456789abcdef0123456789abcdef", "echo %s"},
	{"dapi0123456789abcdef0123456789abcdef", "echo %s"},
	{"Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4", "echo 'AccountKey=%s=='"},
	{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "curl -H 'Authorization: Bearer %s' file:///dev/null"},
	{"MIIEowIBAAKCAQEAexample", "echo '-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----'"},
	{"chd_k3v7q2mzpa_abcdefghijklmnopqrstuvwxyz0123456789abcdefg", "echo %s"},
	{"correct-horse-1", "PASSWORD=%s true"},
	{"correct-horse-2", "true --password %s"},
	{"correct-horse-3", "true --client-secret='%s more'"},
	{"correct-horse-4", "curl -u bob:%s file:///dev/null"},
	{"correct-horse-5", "echo '{\"api_key\": \"%s\"}'"},
	{"correct-horse-6", "cat <<EOF\n%s\nEOF"},
	{"correct-horse-7", "curl 'file:///dev/null?sig=%s'"},
	{"correct-horse-8", "DB_DSN=%s true"},
}

// TestAuditIsClean plays every tool, allowed and refused, with secrets in arguments, contents and environment: every
// call is in the log, the chain is whole, and no secret is in it.
func TestAuditIsClean(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a Unix shell")
	}
	t.Setenv("DEPLOY_PASSPHRASE", planted[len(planted)-1].secret) // so not in parallel
	for _, digest := range []bool{false, true} {
		t.Run(fmt.Sprint("digest: ", digest), func(t *testing.T) {
			dir := auditDir(t)
			f, a := audited(t, auditOptions{dir: dir, sync: -1, digest: digest}, setup{settings: map[string]string{
				"shell.env_allow": "DEPLOY_PASSPHRASE", "permissions.deny": "Edit(/denied/**)",
			}})
			calls, changes := 0, 0
			call := func(name string, readOnly bool, pairs ...any) string {
				t.Helper()
				text := f.must(t, name, asJSON(t, pairs...))
				if strings.HasPrefix(text, "!!") {
					t.Fatalf("%s %v: %s", name, pairs, text)
				}
				if calls++; !readOnly && !strings.HasPrefix(text, "! INPUT_INVALID") && !strings.HasPrefix(text, "! PERMISSION_DENIED") {
					changes++
				}
				return text
			}
			for i, p := range planted {
				command := fmt.Sprintf(p.command, p.secret)
				call("run_shell", permission.Analyze(command, nil).Class == permission.ReadOnly, "command", command, "description", "use "+p.secret)
				if digest {
					continue // only commands differ
				}
				path := filepath.Join(f.work, fmt.Sprint("f", i))
				call("write_file", false, "file_path", path, "content", "key "+p.secret+"\n")
				if got := call("read_file", true, "file_path", path); !strings.Contains(got, p.secret) {
					t.Fatalf("the secret is not in the file: %s", got)
				}
				call("edit_file", false, "file_path", path, "old_string", p.secret, "new_string", p.secret+p.secret)
				call("multi_edit", false, "file_path", path, "edits", []any{map[string]any{"old_string": p.secret + p.secret, "new_string": p.secret}})
				call("grep_search", true, "pattern", "password = "+p.secret, "output_mode", "content")
				call("list_files", true, "pattern", "*", "path", f.work)
				call("run_shell", true, "command", "cat '"+path+"'")
				call("job_output", true, "job_id", p.secret, "filter", p.secret)
				call("job_stop", false, "job_id", p.secret)
				call("edit_file", false, "file_path", path, "old_string", p.secret+"no", "new_string", p.secret)
				call("edit_file", true, "file_path", path, "old_str", p.secret, p.secret, p.secret)
				call("write_file", false, "file_path", "/denied/x", "content", p.secret)
			}
			if got := call("run_shell", false, "command", "env"); !strings.Contains(got, planted[len(planted)-1].secret) {
				t.Errorf("the secret is not in the environment: %s", got)
			}
			must(t, a.close())

			counts := map[string]int{}
			for _, m := range allAudit(t, dir) {
				counts[m["ev"].(string)]++
			}
			if counts["call.done"] != calls || counts["call.start"] != changes {
				t.Errorf("%d calls, %d of them changes; in the log: %v", calls, changes, counts)
			}
			mustCheck(t, dir, calls+changes+2)
			log, err := os.ReadFile(filepath.Join(dir, "audit-r4k2.jsonl"))
			must(t, err)
			for _, p := range planted {
				if at := strings.Index(string(log), p.secret); at >= 0 {
					t.Errorf("%q is in the log: …%s…", p.secret, log[max(0, at-150):min(len(log), at+50)])
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
	f, a := audited(t, auditOptions{dir: dir, sync: -1}, setup{client: "claude-code"})
	path := filepath.Join(f.work, "a.txt")
	f.must(t, "Write", asJSON(t, "file_path", path, "content", "one\n"))
	f.must(t, "run_shell", asJSON(t, "command", "echo two > '"+path+"'; exit 3"))
	f.must(t, "read_file", asJSON(t, "file_path", filepath.Join(f.work, "missing")))
	must(t, a.close())
	lines := allAudit(t, dir)
	if got := events(t, dir); got != "serve.start call.start call.done call.start call.done call.done serve.stop" {
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
			map[string]any{"path": path, "op": "shell", "before": "sha256:2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806", "after": "sha256:27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a"},
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
	want := "args auth by call client dec era ev ip mode p prev rep rule seq sk sum t tool tr trace try v via"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("fields of call.start:\n got %s\nwant %s", got, want)
	}
}
