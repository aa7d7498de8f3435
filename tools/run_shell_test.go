package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"codehand/tools/shell"
	"codehand/tools/tool"
)

// quote makes the arguments of a command.
func quote(command string) string {
	raw, _ := json.Marshal(map[string]string{"command": command})
	return string(raw)
}

func TestRunShell(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, command, want string }{
		{"output", "echo hello", "hello"},
		{"both streams", "echo out; echo err >&2", "out\nerr"},
		{"nothing", "true", "(no output)"},
		{"blank lines", "printf '\\n  \\n  a\\n\\n'", "  a"},
		{"colours", "printf '\\033[31mred\\033[0m'", "red"},
		{"no match", "echo a | grep b", "(no output)\n[exit code 1: no match]"},
		{"stdin is empty", "cat", "(no output)"},
		{"left behind", "sleep 600 & echo started", "started\n[1 background process was killed; use run_in_background to keep one]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			same(t, r.ok("run_shell", quote(c.command)), c.want)
		})
	}
}

func TestRunShellFailed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, command, want string }{
		{"both", "echo out; echo err >&2; exit 3", "COMMAND_FAILED: Command failed (exit code 3)\nStdout:\nout\nStderr:\nerr"},
		{"silent", "exit 7", "COMMAND_FAILED: Command failed (exit code 7)"},
		{"signal", "kill -SEGV $$", "COMMAND_FAILED: Command failed (signal SIGSEGV)"},
		{"another command than the last", "cd missing && grep x f", "COMMAND_FAILED: Command failed (exit code 1)\nStderr:\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			text := r.fails(tool.CommandFailed, "run_shell", quote(c.command))
			if !strings.HasPrefix(text, c.want) {
				t.Errorf("got:\n%s\nwant:\n%s", text, c.want)
			}
		})
	}
}

// A failure shows at most 10,000 characters, and where the rest is.
func TestRunShellLongFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.fails(tool.CommandFailed, "run_shell", quote("seq 1 100000; seq 1 100000 >&2; exit 1"))
	if n := len([]rune(text)); n > 10_200 {
		t.Errorf("%d characters", n)
	}
	path := regexp.MustCompile(`Full output: (.+?) Read it with`).FindStringSubmatch(text)
	if path == nil {
		t.Fatalf("no path in %.300s", text)
	}
	if _, err := os.Stat(path[1]); err != nil {
		t.Error(err)
	}
}

// The stream that is short leaves its room to the other one.
func TestRunShellFailureRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.fails(tool.CommandFailed, "run_shell", quote("echo short; seq 1 1800 >&2; exit 1"))
	if !strings.Contains(text, "Stdout:\nshort\nStderr:\n1\n") || !strings.HasSuffix(text, "\n1800") || strings.Contains(text, "truncated") {
		t.Errorf("%d characters: %.200s", len(text), text)
	}
}

// TestRunShellFailureLines: of a failure whose output is long the lines that look like one are shown, with the numbers that
// they have in the file, and stderr if it is short, wherever it stands among the other lines.
func TestRunShellFailureLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.fails(tool.CommandFailed, "run_shell", quote("seq 1001 2500; echo '--- FAIL: TestX'; echo 'the cause' >&2; seq 2503 4000; exit 1"))
	if !strings.HasPrefix(text, "COMMAND_FAILED: Command failed (exit code 1)\nStdout and stderr:\nOutput too large (") ||
		strings.Count(text, "\nthe cause") != 1 { // both streams are printed at once, so it may stand anywhere
		t.Errorf("got:\n%s", text)
	}
	m := regexp.MustCompile(`\n\[lines 21-2,960 are left out, but for these that look like failures\]\n(\d+): --- FAIL: TestX\n\[lines 2,961-3,000\]\n`).FindStringSubmatch(text)
	path := regexp.MustCompile(`Full output: (.+?) Read it with`).FindStringSubmatch(text)
	if m == nil || path == nil {
		t.Fatalf("no line of the failure, or no path:\n%s", text)
	}
	if page := r.ok("read_file", `{"file_path":"`+path[1]+`","offset":`+m[1]+`,"limit":1}`); !strings.HasPrefix(page, m[1]+"\t--- FAIL: TestX\n") {
		t.Errorf("line %s is %s", m[1], page)
	}
}

func TestRunShellLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.ok("run_shell", quote("seq 1 100000"))
	if n := strings.Count(text, "\n"); n != 61 || !strings.Contains(text, "\n20\n[lines 21-99,960 are left out]\n99961\n") {
		t.Errorf("%d lines:\n%s", n+1, text)
	}
	path := regexp.MustCompile(`Full output: (.+?) Read it with`).FindStringSubmatch(text)
	if path == nil || !strings.HasSuffix(text, "\n100000") {
		t.Fatalf("no path, or no end, in %.300s … %q", text, text[len(text)-60:])
	}
	// The path can be read with read_file, although it is outside the root.
	page := r.ok("read_file", `{"file_path":"`+path[1]+`","offset":99999}`)
	same(t, page, "99999\t99999\n100000\t100000\n[lines 99999-100000 of 100,000]")
}

// TestRunShellGap: of an output beyond 64 MiB the middle is not kept, and nothing says that the whole is in the file.
func TestRunShellGap(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const printed = "yes 1234567890 | head -c 80000000"
	for _, text := range []string{
		r.ok("run_shell", quote(printed)), r.fails(tool.CommandFailed, "run_shell", quote(printed+"; exit 3")),
	} {
		line := regexp.MustCompile(`Full output, but for \d\d\.\d MB of its middle: (.+?) Read it with`)
		told := line.FindStringSubmatch(text)
		if told == nil || strings.Contains(text, "Full output: ") {
			t.Fatalf("%.300s", text)
		}
		found := r.ok("grep_search", `{"pattern":"were not kept","path":"`+told[1]+`","output_mode":"content"}`)
		if !strings.Contains(found, " bytes of output were not kept ...]") {
			t.Error(found)
		}
	}
}

// The directory carries over to the next call if it lies in a root.
// Output that begins and ends with bytes that are not shown has a middle all the same: it was answered with "(no output)".
func TestRunShellHiddenEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.ok("run_shell", `{"command":"head -c 1000000 /dev/zero; printf middle; head -c 1000000 /dev/zero"}`)
	if !strings.HasPrefix(text, "Output too large (1.9 MB, 1 line). Full output: ") || !strings.Contains(text, "[... truncated 2000005 chars ...]") {
		t.Error(text)
	}
}

func TestRunShellCwd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("sub/f", "")
	same(t, r.ok("run_shell", quote("cd sub")), "(no output)\n[current directory: $WORK/sub]")
	same(t, r.ok("run_shell", quote("pwd")), "$WORK/sub")
	// a model that has forgotten its cd
	if text := r.fails(tool.CommandFailed, "run_shell", quote("cd sub && ls")); !strings.HasSuffix(text, "\n[current directory: $WORK/sub]") {
		t.Error(text)
	}
	same(t, r.ok("run_shell", quote("cd /; pwd")), "/\nShell cwd was reset to $WORK/sub")
	r.ok("run_shell", quote("export A=1"))
	same(t, r.ok("run_shell", quote("echo a$A; pwd")), "a\n$WORK/sub")
	if err := os.RemoveAll(filepath.Join(r.dir, "sub")); err != nil {
		t.Fatal(err)
	}
	same(t, r.ok("run_shell", quote("pwd")), "$WORK\n[$WORK/sub is gone. Shell cwd was reset to $WORK]")
}

// A command that changes a file which the session has read says where: an edit of what it changed would be refused.
func TestRunShellHint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("f", "a\n")
	r.write("g", "a\n")
	r.ok("read_file", `{"file_path":"f"}`)
	r.ok("read_file", `{"file_path":"g"}`)
	same(t, r.ok("run_shell", quote("echo b >> f; touch g")),
		"(no output)\n[changed on disk: M f:2; undo_change call000000000003 takes it back]")
	r.ok("read_file", `{"file_path":"f"}`)
	same(t, r.ok("run_shell", quote("true")), "(no output)")
}

func TestRunShellTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text := r.fails(tool.Timeout, "run_shell", `{"command":"echo begun; sleep 600","timeout":30}`)
	if !strings.HasPrefix(text, "TIMEOUT: Command timed out after 1s. Its processes were killed. Output so far:\n") ||
		!strings.HasSuffix(text, "\n[timeout raised from 30 ms to 1000 ms; the unit is milliseconds]") {
		t.Error(text)
	}
	begunAtTimeout(r, "run_shell", "echo begun; sleep 600")
	same(t, r.ok("run_shell", `{"command":"true","timeout":99999999}`), "(no output)\n[timeout lowered from 99999999 ms to 600000 ms, the maximum]")
}

// begunAtTimeout has a command time out that prints "begun" at once, with more and more time, as a busy machine may not have
// begun it within a second.
func begunAtTimeout(r *rig, name, command string) {
	r.t.Helper()
	for seconds := 1; ; seconds *= 4 {
		text := r.fails(tool.Timeout, name, fmt.Sprintf(`{"command":%q,"timeout":%d}`, command, seconds*1000))
		if want := fmt.Sprintf("TIMEOUT: Command timed out after %ds. Its processes were killed. Output so far:\nbegun", seconds); text == want || seconds > 60 {
			same(r.t, text, want)
			return
		}
	}
}

func TestRunShellCancel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun := filepath.Join(r.dir, "begun")
	run := func() (tool.Result, error) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // the command says when it has begun
			for {
				if _, err := os.Stat(begun); err == nil {
					cancel()
					return
				}
			}
		}()
		args, _ := json.Marshal(map[string]string{"command": "echo here; touch begun; sleep 600"})
		call, err := runShell(nil).Bind(r.State, args)
		if err != nil {
			t.Fatal(err)
		}
		return call.Run(ctx, r.Env(call))
	}
	res, err := run()
	for errors.Is(err, context.Canceled) { // it began so fast that its start was still being waited for
		if err := os.Remove(begun); err != nil {
			t.Fatal(err)
		}
		res, err = run()
	}
	if err != nil || res.Failed != tool.Interrupted {
		t.Fatalf("%v %q", err, res.Text)
	}
	// bash may live long enough to say that its child was terminated.
	same(t, strings.TrimSuffix(res.Text, "\nTerminated"), "CANCELLED: Tool execution cancelled by user. The command was killed. Output so far:\nhere")
}

// A command that runs for longer than the call may last goes on as a job, with all of its output.
func TestRunShellMovesToBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var res tool.Result
	var text string
	for r.Prefs.ShellBackgroundMS = 300; r.Prefs.ShellBackgroundMS < 100_000; r.Prefs.ShellBackgroundMS *= 4 {
		res, text = r.do("run_shell", quote("echo first; while [ ! -e go ]; do sleep 0.02; done; echo second"))
		if strings.HasSuffix(text, "\nfirst") {
			break // else the machine is busy, and the command has printed nothing yet
		}
	}
	form := regexp.MustCompile(`^Still running after [0-9.]+ s; moved to the background as (job_[a-z2-7]{12}), ` +
		`where its timeout of 120 s holds\. Output so far below, more with job_output\.\nfirst$`)
	m := form.FindStringSubmatch(text)
	if m == nil || res.Failed != "" || res.Meta.Job == nil || res.Meta.Job.ID != m[1] || res.Meta.Job.State != "running" {
		t.Fatalf("%+v %s", res, text)
	}
	r.write("go", "")
	text = r.ok("job_output", `{"job_id":"`+m[1]+`","block":true}`)
	if !regexp.MustCompile(`^completed after [0-9.]+ s, exit 0, 1 new line\nsecond$`).MatchString(text) {
		t.Error(text)
	}
}

func TestRunShellRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct{ args, want string }{
		{`{}`, `"command" is required`},
		{`{"command":""}`, `"command"`},
		{`{"command":"a\u0000b"}`, "NUL"},
		{`{"command":"true","dangerouslyDisableSandbox":true}`, "no argument can change the sandbox or the shell; the operator sets them"},
		{`{"command":"true","shellExecutable":"/bin/zsh"}`, "no argument can change the sandbox"},
	} {
		if text := r.fails(tool.InputInvalid, "run_shell", c.args); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nhas no %q", c.args, text, c.want)
		}
	}
	r.ok("run_shell", `{"cmd":"true","sandbox":false,"shellExecutable":""}`)
	if got := runShell(nil).Unavailable(r.State); got != "" {
		t.Errorf("run_shell is not available: %s", got)
	}
	r.Prefs.NoShell = "switched off"
	same(t, runShell(nil).Unavailable(r.State), "switched off")
}

// What programs learn of a command: how it ended, how long it took, what it could do at most, and where the next begins.
func TestRunShellMeta(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("sub/f", "x\n")
	type data struct {
		ExitCode                               int
		Signal                                 string
		DurationMS                             int64
		StdoutBytes, StderrBytes, SandboxLevel int
		TimedOut                               bool
		Class, Cwd                             string
	}
	for _, c := range []struct {
		args string
		want data // without its duration, and how one that timed out was ended
	}{
		{quote("echo abc"), data{StdoutBytes: 4, Class: "readonly", Cwd: r.dir}},
		{quote("echo abc; exit 4"), data{ExitCode: 4, StdoutBytes: 4, Class: "write", Cwd: r.dir}},
		{quote("echo abcd >&2; kill -TERM $$"), data{ExitCode: 143, Signal: "SIGTERM", StderrBytes: 5, Class: "write", Cwd: r.dir}},
		{`{"command":"sleep 600","timeout":1000}`, data{TimedOut: true, Class: "write"}},
		{quote("cd sub && touch made"), data{Class: "write", Cwd: filepath.Join(r.dir, "sub")}},
		{quote("rm -rf made"), data{Class: "dangerous", Cwd: filepath.Join(r.dir, "sub")}},
	} {
		res, text := r.do("run_shell", c.args)
		var d data
		if err := json.Unmarshal(res.Meta.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.TimedOut {
			if d.Signal == "" || d.ExitCode == 0 || d.DurationMS < 1000 {
				t.Errorf("%s: %+v", c.args, d)
			}
			d.Signal, d.ExitCode = "", 0 // a busy machine may need a second signal
		}
		d.DurationMS, c.want.SandboxLevel = 0, 1
		if d != c.want || res.Meta.Sandbox.Level != 1 {
			t.Errorf("%s: %+v, want %+v\n%s", c.args, d, c.want, text)
		}
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, text := r.do("run_shell", `{"command":"echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; echo three","run_in_background":true}`)
	m := regexp.MustCompile(`^Started job (job_[a-z2-7]{12}): (.*)\nOutput: (/.*\.log)\nRead new output with job_output, stop it with job_stop\.$`).FindStringSubmatch(text)
	if m == nil || res.Meta.Job == nil || res.Meta.Job.State != "running" {
		t.Fatal(text)
	}
	id := m[1]
	text = r.fails(tool.JobUnknown, "job_output", `{"job_id":"job_aaaaaaaaaaaa"}`)
	same(t, text, "JOB_UNKNOWN: No job job_aaaaaaaaaaaa. Running: "+id+" (echo one; while [ ! -e go ]; do sleep 0.02; done; echo two;  …). Call job_list to see those that have ended.")
	r.fails(tool.JobUnknown, "job_stop", `{"job_id":"x"}`)
	long := strings.Repeat("x", 100_000) // was repeated whole, and filled the answer
	if text := r.fails(tool.JobUnknown, "job_stop", `{"job_id":"`+long+`"}`); len(text) > 500 {
		t.Errorf("%d bytes to refuse a job's name", len(text))
	}
	if text := r.fails(tool.InputInvalid, "read_file", `{"file_path":"`+long+`"}`); len(text) > 500 {
		t.Errorf("%d bytes to refuse a path", len(text))
	}
	r.write("go", "")
	ended(t, r, id)
	text = r.ok("job_output", `{"bash_id":"`+id+`","block":true,"filter":"^t|one"}`)
	if !regexp.MustCompile(`^completed after [0-9.]+ s, exit 0, 3 new lines, 3 of them shown\none\ntwo\nthree$`).MatchString(text) {
		t.Error(text)
	}
	text = r.ok("job_output", `{"job_id":"`+id+`"}`)
	if !strings.HasSuffix(text, ", exit 0, 0 new lines\n(no new output)") {
		t.Error(text)
	}
	text = r.ok("job_stop", `{"job_id":"`+id+`"}`)
	if !regexp.MustCompile(`^Job ` + id + ` \(.*\) had already ended: completed \(exit 0\) after [0-9.]+ s\.$`).MatchString(text) {
		t.Error(text)
	}
	cursors, err := r.Cursors.Load(t.Context())
	if err != nil || !cursors[id].Announced {
		t.Errorf("a job whose end was shown will be announced: %v %v", cursors, err)
	}
}

func TestJobStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, _ := r.do("run_shell", `{"command":"sleep 600","run_in_background":true}`)
	id := res.Meta.Job.ID
	text := r.ok("job_output", `{"job_id":"`+id+`"}`)
	if !regexp.MustCompile(`^running for [0-9.]+ s, 0 new lines\n\(no new output\)$`).MatchString(text) {
		t.Error(text)
	}
	text = r.ok("job_stop", `{"job_id":"`+id+`"}`)
	if !regexp.MustCompile(`^Stopped job ` + id + ` \(sleep 600\) after [0-9.]+ s\.$`).MatchString(text) {
		t.Error(text)
	}
	if i, err := r.Shell.Await(t.Context(), id, time.Now()); err != nil || i.State != shell.Killed {
		t.Errorf("%+v %v", i, err)
	}
}

func TestJobOutputFilter(t *testing.T) {
	t.Parallel()
	c, body, _ := jobOutputFilter(shell.Chunk{Info: shell.Info{State: shell.Running}, Head: "a 1\nb\na 2\na unfinished", Size: 20, Next: 120}, regexp.MustCompile("^a"))
	same(t, body, "a 1\na 2")
	if c.Next != 120-int64(len("a unfinished")) {
		t.Errorf("an unfinished line is consumed: next is %d", c.Next)
	}
	_, body, _ = jobOutputFilter(shell.Chunk{Info: shell.Info{State: shell.Completed, Log: "/log"}, Head: "a\n", Tail: "b\na last", Size: 1000}, regexp.MustCompile("^a"))
	same(t, body, "a\na last\n[990 bytes in the middle were skipped without filtering; the whole output is in /log]")
	r := newRig(t)
	r.fails(tool.RegexInvalid, "job_output", `{"job_id":"x","filter":"("}`)
}

// ended waits for the end of a job.
func ended(t *testing.T, r *rig, id string) {
	t.Helper()
	if i, err := r.Shell.Await(t.Context(), id, time.Time{}); err != nil || i.State == shell.Running {
		t.Fatalf("%+v %v", i, err)
	}
}

// TestJobOutputAwaitsALine: with a filter a call that blocks waited for the end of the job, or for its whole time, when
// the line that was waited for had long been there: that a server listens.
func TestJobOutputAwaitsALine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, _ := r.do("run_shell", `{"command":"echo first; while [ ! -e go ]; do sleep 0.02; done; echo other; echo listening; sleep 600","run_in_background":true}`)
	ask := `{"job_id":"` + res.Meta.Job.ID + `","block":true,"timeout_ms":600000,"filter":"LISTENING|^listening"}`
	r.write("go", "")
	if text := r.ok("job_output", ask); !regexp.MustCompile(`^running for [0-9.]+ s, 3 new lines, 1 of them shown\nlistening$`).MatchString(text) {
		t.Error(text)
	}
	text := r.ok("job_output", strings.Replace(ask, "600000", "1", 1))
	if !strings.HasSuffix(text, ", 0 new lines\n(no new line matches)") {
		t.Error(text)
	}
	waits := strings.Replace(ask, `,"filter":"LISTENING|^listening"`, "", 1)
	_, text = r.doCtx(t.Context(), "job_output", waits, time.Unix(1, 0)) // of a client that waits no longer
	cut := `^running for [0-9.]+ s, 0 new lines, waited 0 s of 600 s, as long as this client may: call again\n`
	if !regexp.MustCompile(cut).MatchString(text) {
		t.Error(text)
	}
	r.ok("job_stop", `{"job_id":"`+res.Meta.Job.ID+`"}`)
}

func TestJobLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 16 {
		r.ok("run_shell", `{"command":"sleep 600","run_in_background":true}`)
	}
	text := r.fails(tool.JobLimit, "run_shell", `{"command":"sleep 600","run_in_background":true}`)
	if n := strings.Count(text, "(sleep 600)"); n != 16 {
		t.Errorf("%d jobs are listed, want 16:\n%s", n, text)
	}
}
