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
	"codehand/server/audit"
	"codehand/server/replaytest"
)

// What hooks decide is in the record, with the line of the hook that did, and nothing of what they say or write
// (SEC-44).
func TestSEC44HooksInTheRecord(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	base := leaktest.Dir(t)
	work, dir, secret := filepath.Join(base, "work"), filepath.Join(base, "audit"), "ghp_"+strings.Repeat("a1B2", 9)
	user := filepath.Join(base, ".config", "codehand", "config.toml")
	must(t, os.MkdirAll(filepath.Dir(user), 0o700))
	must(t, os.MkdirAll(work, 0o700))
	var settings strings.Builder
	line := map[string]string{}
	for _, h := range []struct{ event, matcher, script string }{
		{"PreToolUse", "Bash", `echo "no ` + secret + `" >&2; exit 2`},
		{"PreToolUse", "Write", `echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"file_path":"b.txt","content":"` + secret + `"}}}'`},
		{"PreToolUse", "Edit", `echo '{"decision":"ask","reason":"` + secret + `"}'`},
		{"PermissionRequest", "MultiEdit", `echo '{"decision":"block","reason":"` + secret + `"}'`},
		{"PostToolUse", "Glob", `echo '{"decision":"block","reason":"` + secret + `","additionalContext":"` + secret + `"}'`},
	} {
		words, err := json.Marshal(replaytest.HookScript(t, h.script))
		must(t, err)
		line[h.matcher] = fmt.Sprintf("%s:%d:3", user, strings.Count(settings.String(), "\n")+1)
		fmt.Fprintf(&settings, "[[hooks.%s]]\nmatcher = %q\ncommand = %s\n", h.event, h.matcher, words)
	}
	must(t, os.WriteFile(user, []byte(settings.String()), 0o600))
	cmd := exec.Command(path, "stdio", work, "--audit-dir="+dir, "--permissions-ask=MultiEdit")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + base, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + base, "CODEHAND_SESSION=" + replaytest.Handle}
	p := replaytest.Speak(t, cmd, "hooks-test", false)
	want := []struct{ tool, args, begin, decision, by, matcher string }{
		{"run_shell", `{"command":"echo x"}`, "! HOOK_BLOCKED", "deny", "hook", "Bash"},
		{"write_file", `{"file_path":"a.txt","content":"x"}`, "Created b.txt", "allow", "hook", "Write"},
		{"edit_file", `{"file_path":"b.txt","old_string":"g","new_string":"h"}`, "! ASK_UNAVAILABLE", "ask.deny", "client", "Edit"},
		{"multi_edit", `{"file_path":"b.txt","edits":[{"old_string":"g","new_string":"h"}]}`, "! HOOK_BLOCKED", "deny", "hook", "MultiEdit"},
		{"list_files", `{"pattern":"*"}`, "b.txt", "allow", "mode", ""},
	}
	for _, c := range want {
		if text := p.Must(t, c.tool, c.args); !strings.HasPrefix(text, c.begin) {
			t.Errorf("%s: %s", c.tool, text)
		}
	}
	must(t, p.In.Close())
	must(t, p.Cmd.Wait())
	var done []map[string]any
	before := map[any]map[string]any{} // the lines before calls that may change something, which hold their decision
	for _, m := range replaytest.AuditLines(t, dir) {
		switch m["ev"] {
		case "call.start":
			before[m["call"]] = m
		case "call.done":
			if start := before[m["call"]]; start != nil {
				m = start
			}
			done = append(done, m)
		}
	}
	if len(done) != len(want) {
		t.Fatalf("%d calls are in the record", len(done))
	}
	for i, c := range want {
		at, _ := done[i]["origin"].(string)
		if m := done[i]; m["tool"] != c.tool || m["dec"] != c.decision || m["by"] != c.by || at != line[c.matcher] {
			t.Errorf("%s: %v by %v, from %q, want %q", c.tool, m["dec"], m["by"], at, line[c.matcher])
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	must(t, err)
	whole, err := os.ReadFile(files[0])
	must(t, err)
	if strings.Contains(string(whole), secret) {
		t.Error("what a hook said is in the record")
	}
	if _, err := audit.Check(dir); err != nil {
		t.Error(err)
	}
}
