package tools

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/shell"
	"codehand/tools/terminal"
	"codehand/tools/tool"
)

// A console is a job with a terminal, which a test types into by the tools.
type console struct {
	*rig
	id string
}

// newConsole starts a command; a program that it needs and that is missing skips the test.
func newConsole(t *testing.T, r *rig, program, command string) *console {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") != "" && program != "vim" {
			t.Fatal(program + " is not installed")
		}
		t.Skip(program + " is not installed")
	}
	args, err := json.Marshal(map[string]any{"command": command, "pty": true})
	if err != nil {
		t.Fatal(err)
	}
	res, text := r.do("run_shell", string(args))
	if res.Meta.Job == nil || !strings.Contains(text, "Type into it with job_input") {
		t.Fatalf("not started: %s", text)
	}
	return &console{r, res.Meta.Job.ID}
}

// types presses keys, behind a text, and returns what the call shows.
func (c *console) types(text string, keys ...string) string {
	c.t.Helper()
	args, err := json.Marshal(map[string]any{"job_id": c.id, "text": text, "keys": keys, "timeout_ms": 0})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.ok("job_input", string(args))
}

func (c *console) display() terminal.Display {
	c.t.Helper()
	_, term, err := shell.TerminalOf(c.t.Context(), c.Shell, c.id)
	if err != nil {
		c.t.Fatal(err)
	}
	return term.Display(0, 0)
}

// golden waits until the screen is equal to rows, each a pattern for the whole row; the last one may be followed by
// others, if it is "...".
func (c *console) golden(rows ...string) terminal.Display {
	c.t.Helper()
	is := func(d terminal.Display) bool {
		want := rows
		if want[len(want)-1] == "..." {
			want = want[:len(want)-1]
			d.Rows = d.Rows[:min(len(d.Rows), len(want))]
		}
		return slices.EqualFunc(d.Rows, want, func(row, pattern string) bool {
			return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(row)
		})
	}
	late := time.After(2 * time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		d := c.display()
		if is(d) {
			return d
		}
		select {
		case <-late:
			c.t.Fatalf("the screen is not as it should be:\n%s\nbut\n%s", strings.Join(rows, "\n"), strings.Join(d.Rows, "\n"))
		case <-tick.C:
		}
	}
}

// A REPL: what is typed is run, an interrupt ends a line that never would, a new size reaches the program, and the end of
// the input ends it.
func TestTerminalPython(t *testing.T) {
	t.Parallel()
	c := newConsole(t, newRig(t), "python3", "PYTHON_BASIC_REPL=1 PYTHONSTARTUP= exec python3 -q -E")
	c.golden(">>>")
	c.types("6*7", "Enter")
	c.golden(">>> 6\\*7", "42", ">>>")
	c.types("import time; time.sleep(100000)\n")
	d := c.golden(">>> 6\\*7", "42", ">>> import time; time.sleep\\(100000\\)")
	if d.Row != 4 || d.Column != 1 || d.Alternate {
		t.Errorf("the cursor is at %d, %d", d.Row, d.Column)
	}
	for !slices.Contains(c.display().Rows, "KeyboardInterrupt") { // the sleep may not have begun
		c.types("", "Ctrl-C")
		c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":500}`)
	}
	c.types("", "Ctrl-L")
	c.ok("job_input", `{"job_id":"`+c.id+`","columns":40,"rows":6}`)
	c.types("import os; print('si' + 'ze', *os.get_terminal_size())\n")
	for !slices.Contains(c.display().Rows, "size 40 6") {
		c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":500}`)
	}
	c.types("", "Ctrl-D")
	text := c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":600000}`)
	for strings.HasPrefix(text, "running") {
		text = c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":600000}`)
	}
	if !strings.HasPrefix(text, "completed after ") || !strings.Contains(text, "exit 0") {
		t.Errorf("got %s", text)
	}
	if again := c.ok("job_output", `{"job_id":"`+c.id+`"}`); !strings.HasSuffix(again, "0 new lines\n(screen unchanged)") {
		t.Errorf("a second look: %s", again)
	}
	c.fails(tool.JobEnded, "job_input", `{"job_id":"`+c.id+`","text":"x"}`)
}

// Keys are characters, names and chords of Emacs, in any order.
func TestTerminalMixedKeys(t *testing.T) {
	t.Parallel()
	c := newConsole(t, newRig(t), "cat", "exec cat")
	c.types("", "a", "Space", "ü", "x", "Backspace", "1", "Enter")
	c.golden("a ü1", "a ü1")
	c.types("", "q", "C-m")
	c.golden("a ü1", "a ü1", "q", "q")
	for _, key := range []string{"cw", "C-", "C-dd", "M-", "", "Hyper-x"} {
		args, err := json.Marshal(map[string]any{"job_id": c.id, "keys": []string{"a", key}})
		if err != nil {
			t.Fatal(err)
		}
		got := c.fails(tool.InputInvalid, "job_input", string(args))
		if !strings.Contains(got, `"keys[1]": there is no key `+strconv.Quote(key)) {
			t.Errorf("%q: %s", key, got)
		}
	}
	text := c.types("", "C-d")
	for !strings.HasPrefix(text, "completed after ") {
		text = c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":600000}`)
	}
}

// git opens an editor on the whole screen; what is typed there counts.
func TestTerminalRebase(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r.ok("run_shell", `{"command":"git init -qb main . && git config user.name a && git config user.email a@b && for n in one two three; `+
		`do echo $n >$n && git add $n && git commit -qm $n; done"}`)
	c := newConsole(t, r, "vim", `GIT_SEQUENCE_EDITOR="vim -N -u NONE -i NONE -n --cmd 'set shm+=F'" git rebase -i HEAD~2`)
	d := c.golden(`pick [0-9a-f]{7} (# )?two`, `pick [0-9a-f]{7} (# )?three`, "", "# Rebase .*", "...")
	if !d.Alternate || d.Height != 24 || d.Row != 1 || d.Column != 1 {
		t.Errorf("the editor is not drawn on the whole screen: %+v", d)
	}
	c.types("ddp")
	d = c.golden(`pick [0-9a-f]{7} (# )?three`, `pick [0-9a-f]{7} (# )?two`, "", "# Rebase .*", "...")
	if d.Row != 2 || d.Column != 1 {
		t.Errorf("the cursor is at %d, %d", d.Row, d.Column)
	}
	c.types("ofoo bar", "Esc")
	c.golden(`pick [0-9a-f]{7} (# )?three`, `pick [0-9a-f]{7} (# )?two`, "foo bar", "", "# Rebase .*", "...")
	c.types("u:wq", "Enter")
	for c.display().Alternate || !strings.Contains(strings.Join(c.display().Rows, "\n"), "Successfully rebased and updated refs/heads/main.") {
		c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":500}`)
	}
	if log := r.ok("run_shell", `{"command":"git log --format=%s"}`); log != "two\nthree\none" {
		t.Errorf("the order is %q", log)
	}
}

// A passphrase is asked for through the terminal, not shown, and in no record of codehand's.
func TestTerminalPassphrase(t *testing.T) {
	t.Parallel()
	c := newConsole(t, newRig(t), "ssh-keygen", "ssh-keygen -t ed25519 -C comment -f key")
	const first = "Generating public/private ed25519 key pair."
	c.golden(first, "Enter passphrase .*:")
	const phrase = "correct horse battery"
	call, err := c.tool("job_input").Bind(c.State, json.RawMessage(`{"job_id":"`+c.id+`","text":"`+phrase+`","keys":["Enter"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range call.Targets { // of which the audit and rules hear
		if strings.Contains(target.Value, phrase) || target.Value != "ssh-keygen -t ed25519 -C comment -f key" {
			t.Errorf("the call is about %q", target.Value)
		}
	}
	if strings.Contains(call.Activity, phrase) {
		t.Errorf("the activity is %q", call.Activity)
	}
	c.types(phrase, "Enter")
	c.golden(first, "Enter passphrase .*:", "Enter same passphrase again:")
	c.types(phrase, "Enter")
	box := []string{first, "Enter passphrase .*:", "Enter same passphrase again:", "Your identification has been saved in key",
		"Your public key has been saved in key.pub", "The key fingerprint is:", "SHA256:.* comment", "The key's randomart image is:",
		`\+--\[ED25519 256\]--\+`}
	for range 9 {
		box = append(box, `\|.{17}\|`)
	}
	c.golden(append(box, `\+----\[SHA256\]-----\+`)...)
	log, err := os.ReadFile(c.info().Log)
	if err != nil || strings.Contains(string(log), phrase) || !strings.Contains(string(log), first) {
		t.Errorf("the log: %v, %q", err, log)
	}
	if _, term, err := shell.TerminalOf(t.Context(), c.Shell, c.id); err == nil && strings.Contains(term.Typing().Line, phrase) {
		t.Error("what was typed secretly is remembered")
	}
	if out := c.ok("run_shell", `{"command":"ssh-keygen -y -P '`+phrase+`' -f key"}`); !strings.HasPrefix(out, "ssh-ed25519 ") {
		t.Errorf("the key is not made with that passphrase: %s", out)
	}
}

func (c *console) info() shell.Info {
	c.t.Helper()
	info, err := c.Shell.Await(c.t.Context(), c.id, time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	return info
}

// A pager draws on the whole screen, anew in another size, and gives the text back in the end.
func TestTerminalPager(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var lines, rows []string
	for i := range 100 {
		lines = append(lines, "line "+strconv.Itoa(i+1))
	}
	rows = append(rows, lines...)
	r.write("f", strings.Join(lines, "\n")+"\n")
	c := newConsole(t, r, "less", "echo before; LESSHISTFILE=- less -S f; echo after")
	d := c.golden(append(slices.Clone(rows[:23]), "f")...)
	if !d.Alternate || d.Row != 24 || d.Column != 2 {
		t.Errorf("got %+v", d)
	}
	c.types("", "Space")
	c.golden(append(slices.Clone(rows[23:46]), ":")...)
	c.types("", "Up")
	c.golden(append(slices.Clone(rows[22:45]), ":")...)
	c.ok("job_input", `{"job_id":"`+c.id+`","columns":50,"rows":6}`)
	c.golden(append(slices.Clone(rows[22:27]), ":")...)
	c.types("/line 77", "Enter")
	c.golden(append(slices.Clone(rows[76:81]), ":")...)
	c.types("q")
	if d = c.golden("before", "after"); d.Alternate {
		t.Errorf("got %+v", d)
	}
}

// 10 MB on the screen cost one call no more than its limit, and little of them is kept.
func TestTerminalFlood(t *testing.T) {
	t.Parallel()
	c := newConsole(t, newRig(t), "yes", `yes "a line of words" | head -c 10485760; echo; echo "done"`)
	most := 0
	for !strings.Contains(strings.Join(c.display().Rows, "\n"), "done") {
		text := c.ok("job_output", `{"job_id":"`+c.id+`","block":true,"timeout_ms":1000}`)
		most = max(most, len(text))
	}
	most = max(most, len(c.ok("job_output", `{"job_id":"`+c.id+`"}`)))
	if most > 13_000 {
		t.Errorf("an answer has %d bytes", most)
	}
	if i := c.info(); i.Out < 10<<20 {
		t.Errorf("%d bytes are kept in the log", i.Out)
	}
}

// What is typed into a shell is a command as any other: rules about commands hold, also for what was typed in parts, and
// what is dangerous is for a person alone. Into another program it is that program, which rules that forbid commands ask
// about.
func TestTerminalRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sh := newConsole(t, r, "bash", "exec bash --norc --noprofile -i")
	cat := newConsole(t, r, "cat", "exec cat")
	for _, c := range []*console{sh, cat} {
		c.types("", "Enter")
	}
	rule := func(text string) []permission.Rule { return []permission.Rule{{Text: text, Origin: "test"}} }
	deny, allow := permission.Options{Deny: rule("Bash(make *)")}, permission.Options{Allow: rule("Bash(make *)")}
	for name, x := range map[string]struct {
		c      *console
		args   string
		o      permission.Options
		mode   permission.Mode
		value  string
		want   permission.Verdict
		danger bool
	}{
		"a command":            {sh, `"text":"make a","keys":["Enter"]`, permission.Options{}, permission.Default, "make a", permission.Ask, false},
		"bypassed":             {sh, `"text":"make a\n"`, permission.Options{}, permission.Bypass, "make a", permission.Allow, false},
		"allowed":              {sh, `"text":"make a\n"`, allow, permission.Default, "make a", permission.Allow, false},
		"allowed and more":     {sh, `"text":"make a\ndate\n"`, allow, permission.Default, "make a\ndate", permission.Ask, false},
		"denied":               {sh, `"text":"make a\n"`, deny, permission.Bypass, "make a", permission.Deny, false},
		"denied behind more":   {sh, `"text":"cd x; make a\n"`, deny, permission.Bypass, "cd x; make a", permission.Deny, false},
		"history":              {sh, `"text":"!ma\n"`, deny, permission.Bypass, "!ma", permission.Ask, false},
		"recalled":             {sh, `"keys":["Up","Enter"]`, deny, permission.Bypass, "exec bash --norc --noprofile -i", permission.Ask, true},
		"completed":            {sh, `"text":"ma\tke","keys":["Enter"]`, permission.Options{}, permission.Default, "ma\tke", permission.Ask, true},
		"in characters":        {sh, `"keys":["m","a","k","e","Space","a","Enter"]`, deny, permission.Bypass, "make a", permission.Deny, false},
		"given up, Emacs":      {sh, `"text":"x","keys":["C-c","l","s","C-m"]`, permission.Options{}, permission.Default, "xls", permission.Ask, false},
		"changed, Emacs":       {sh, `"text":"ake a","keys":["C-a","m","Enter"]`, deny, permission.Bypass, "ake am", permission.Ask, true},
		"last argument, Emacs": {sh, `"text":"x","keys":["M-.","Enter"]`, deny, permission.Bypass, "x", permission.Ask, true},
		"dangerous, in keys":   {sh, `"text":"rm -rf ","keys":["/","e","t","c","\r"]`, permission.Options{}, permission.Bypass, "rm -rf /etc", permission.Ask, true},
		"dangerous":            {sh, `"text":"rm -rf /etc\n"`, permission.Options{}, permission.Bypass, "rm -rf /etc", permission.Ask, true},
		"plan":                 {sh, `"text":"ls\n"`, permission.Options{}, permission.Plan, "ls", permission.Deny, false},
		"into a program":       {cat, `"text":"make a\n"`, permission.Options{}, permission.Default, "exec cat", permission.Ask, false},
		"a program, bypassed":  {cat, `"text":"make a\n"`, permission.Options{}, permission.Bypass, "exec cat", permission.Allow, false},
		"a program, and rules": {cat, `"text":"make a\n"`, deny, permission.Bypass, "exec cat", permission.Ask, false},
		"its danger":           {cat, `"text":":!rm -rf /etc\n"`, permission.Options{}, permission.Bypass, "exec cat", permission.Ask, true},
		"its danger, in lines": {cat, `"text":"(x\nrm -rf /etc\n"`, permission.Options{}, permission.Bypass, "exec cat", permission.Ask, true},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := r.tool("job_input").Bind(r.State, json.RawMessage(`{"job_id":"`+x.c.id+`",`+x.args+`}`))
			if err != nil {
				t.Fatal(err)
			}
			policy, err := permission.New(x.o)
			if err != nil {
				t.Fatal(err)
			}
			got := policy.Decide(permission.Request{
				Tool: "job_input", Family: call.Spec.Family, Input: call.Input, Targets: call.Targets, Own: call.Verdict, Mode: x.mode,
				ReadOnly: call.Traits.ReadOnly,
			})
			if got.Verdict != x.want || len(call.Targets) != 1 || call.Targets[0].Value != x.value {
				t.Errorf("%v (%s) about %+v", got.Verdict, got.Reason, call.Targets)
			}
			if a := call.Targets[0].Analysis; (a.Class == bash.Dangerous) != x.danger || a.Class == bash.ReadOnly || call.Contain() {
				t.Errorf("class %v, read-only or contained", a.Class)
			}
		})
	}
	// In parts: the line that the shell will read counts, not what the last call adds.
	sh.types("make ")
	for _, c := range []struct{ args, value string }{{`"text":"b"`, "make b"}, {`"keys":["Enter"]`, "make"}} {
		call, err := r.tool("job_input").Bind(r.State, json.RawMessage(`{"job_id":"`+sh.id+`",`+c.args+`}`))
		if err != nil || strings.TrimSpace(call.Targets[0].Value) != c.value {
			t.Errorf("%s: %v, %+v", c.args, err, call.Targets)
		}
	}
	sh.types("", "Ctrl-C")
	sh.types("rm -rf \\\n")
	call, err := r.tool("job_input").Bind(r.State, json.RawMessage(`{"job_id":"`+sh.id+`","text":"/etc\n"}`))
	if err != nil || call.Verdict != permission.Ask {
		t.Errorf("a command over two lines: %v, %v", err, call.Verdict)
	}
}

// A terminal is never for what is dangerous without a person, whatever the mode and the rules; and no command with one is
// proved to change nothing.
func TestTerminalStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for command, want := range map[string]permission.Verdict{"cat f": permission.Allow, "rm -rf /etc": permission.Ask} {
		call, err := r.tool("run_shell").Bind(r.State, json.RawMessage(`{"command":"`+command+`","pty":true}`))
		if err != nil || call.Verdict != want || call.Traits.ReadOnly || call.Targets[0].Analysis.Class == bash.ReadOnly {
			t.Errorf("%s: %v, %+v", command, err, call)
		}
	}
}
