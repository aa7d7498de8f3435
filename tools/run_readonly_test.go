package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/bash"
	"codehand/tools/tool"
)

// What is refused was not begun, and the refusal names the reason.
func TestRunReadonlyRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "one\n")
	for _, command := range []string{
		"touch made", "cat f > made", "find . -delete", "rm f", "echo $(touch made)", "ls; touch made", "ls | tee made", "sh -c 'touch made'",
		"git commit -m x", "cat f &", "sort -o f f", "sed -i s/one/two/ f", "X=1", "eval ls", "./ls", "cat /etc/passwd", "ls\x01",
	} {
		text := r.fails(tool.NotReadOnly, "run_readonly", quote(command))
		if !strings.Contains(text, " is not read-only: ") || !strings.HasSuffix(text, ". Use run_shell.") || len(text) > 500 {
			t.Errorf("%q: %s", command, text)
		}
	}
	r.fails(tool.InputInvalid, "run_readonly", quote(strings.Repeat("x", 10_001)))
	text := r.fails(tool.NotReadOnly, "run_readonly", quote("touch "+strings.Repeat("ä", 4_000)))
	if n := len([]rune(text)); n > 500 {
		t.Errorf("%d characters to refuse a long command", n)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "made")); err == nil {
		t.Error("a refused command has run")
	}
	r.holds("f", "one\n")
}

// Programs learn what is known of a command, and that no sandbox stands behind it yet.
func TestRunReadonlyMeta(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("sub/f", "one\n")
	for name, command := range map[string]string{"run_readonly": "cd sub && cat f", "run_shell": "head sub/f"} {
		res, text := r.do(name, quote(command))
		var d struct {
			ExitCode, StdoutBytes, SandboxLevel int
			Class, Cwd                          string
		}
		if err := json.Unmarshal(res.Meta.Data, &d); err != nil || text != "one" {
			t.Fatalf("%s: %v, %s", name, err, text)
		}
		if d.Class != "readonly" || d.SandboxLevel != 1 || d.ExitCode != 0 || d.StdoutBytes != 4 || name == "run_readonly" && d.Cwd != "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	res, _ := r.do("run_shell", quote("touch sub/g"))
	if !strings.Contains(string(res.Meta.Data), `"class":"write"`) {
		t.Errorf("%s", res.Meta.Data)
	}
	cwd, err := r.Cwd.Load(t.Context())
	if err != nil || cwd != "" && cwd != r.dir {
		t.Errorf("the session stands in %s, %v", cwd, err)
	}
}

// Without a progress token it ends in time with what it has, since it never becomes a job.
func TestRunReadonlyTimeout(t *testing.T) {
	t.Parallel()
	env := tool.Env{State: newRig(t).State}
	for _, c := range []struct {
		asked int
		max   int // shell.max_timeout_ms
		by    time.Duration
		want  time.Duration
		early bool
		notes string
	}{
		{0, 600_000, 0, time.Minute, false, ""},
		{90_000, 600_000, 0, 90 * time.Second, false, ""},
		{500_000, 600_000, 0, 2 * time.Minute, false, "[timeout lowered from 500000 ms to 120000 ms, the maximum]"},
		{0, 30_000, 0, 30 * time.Second, false, ""},
		{90_000, 30_000, 0, 30 * time.Second, false, "[timeout lowered from 90000 ms to 30000 ms, the maximum]"},
		{30, 600_000, 0, time.Second, false, "[timeout raised from 30 ms to 1000 ms; the unit is milliseconds]"},
		{0, 600_000, 45 * time.Second, 45 * time.Second, true, ""},
		{10_000, 600_000, 45 * time.Second, 10 * time.Second, false, ""},
		{0, 600_000, -time.Second, 5 * time.Second, true, ""},
	} {
		synctest.Test(t, func(t *testing.T) { // so that no time goes by
			env.Prefs.ShellMaxMS, env.AnswerBy = c.max, time.Time{}
			if c.by != 0 {
				env.AnswerBy = time.Now().Add(c.by + 20*time.Millisecond)
			}
			got, early, notes := runReadonlyTimeout(env, runReadonlyInput{Timeout: c.asked})
			if got != c.want || early != c.early || strings.Join(notes, "\n") != c.notes {
				t.Errorf("%+v: got %s %q", c, got, notes)
			}
		})
	}
	r := newRig(t)
	r.write("f", "begun\n")
	res, text := r.doCtx(t.Context(), "run_readonly", `{"command":"cat f; sleep 60"}`, time.Now())
	if res.Failed != tool.Timeout || !strings.HasPrefix(text, "TIMEOUT: Command timed out after 5s. Its processes were killed. Output so far:\n") ||
		!strings.HasSuffix(text, "\n[this client does not wait longer; run_shell moves a long command to the background]") {
		t.Error(text)
	}
	begunAtTimeout(r, "run_readonly", "cat f; sleep 60; sleep 60")
}

// A repository that was given a program to start after the command was let through does not get to start it.
func TestGitIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run_readonly", "run_shell"} {
		r := newRig(t)
		r.write(".git/HEAD", "ref: refs/heads/main\n")
		r.write(".git/objects/x", "")
		r.write(".git/refs/x", "")
		x := runReadonly
		if name == "run_shell" {
			x = runShell(nil)
		}
		call, err := x.Bind(r.State, json.RawMessage(quote("git status")))
		if err != nil || !call.Traits.ReadOnly {
			t.Fatalf("%s: %v, %+v", name, err, call.Traits)
		}
		r.write(".git/config", "[core]\nfsmonitor = touch made\n")
		_, text := r.refused(call.Run(t.Context(), r.Env(call)))
		same(t, text, `NOT_READ_ONLY: "git status" is not read-only: git: the repository's configuration has core.fsmonitor. Use run_shell.`)
		if _, err := os.Stat(filepath.Join(r.dir, "made")); err == nil {
			t.Errorf("%s: the program ran", name)
		}
	}
}

// A part of a command that is git counts by itself, for rules that allow the others.
func TestGitInPartsIsWeighed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(".git/HEAD", "ref: refs/heads/main\n")
	r.write(".git/objects/x", "")
	r.write(".git/refs/x", "")
	for _, config := range []string{"", "[alias]\nx = !x\n"} {
		r.write(".git/config", config)
		call, err := runShell(nil).Bind(r.State, json.RawMessage(quote("git log && make")))
		if err != nil || call.Traits.ReadOnly || len(call.Targets) != 1 {
			t.Fatalf("%v %+v", err, call)
		}
		parts := call.Targets[0].Analysis.Parts
		if len(parts) != 2 || (parts[0].Class == bash.ReadOnly) != (config == "") || parts[1].Class == bash.ReadOnly {
			t.Errorf("with %q: %+v", config, parts)
		}
	}
}
