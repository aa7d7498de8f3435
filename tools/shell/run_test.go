package shell

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// never is no limit for Wait.
var never = time.Time{}

// alive returns the processes whose command line holds word.
func alive(t *testing.T, word string) []string {
	t.Helper()
	names, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("needs /proc to see what survives:", err)
	}
	var list []string
	for _, name := range names {
		if _, err := strconv.Atoi(name.Name()); err != nil {
			continue
		}
		text, _ := os.ReadFile("/proc/" + name.Name() + "/cmdline")
		if line := strings.ReplaceAll(string(text), "\x00", " "); strings.Contains(line, word) {
			list = append(list, name.Name()+": "+line)
		}
	}
	return list
}

// noneAlive waits until no process has the word: the kernel takes its time with one that was killed.
func noneAlive(t *testing.T, word string) {
	t.Helper()
	var left []string
	if !reached(func() bool { left = alive(t, word); return len(left) == 0 }) {
		t.Errorf("survivors: %v", left)
	}
}

// sleepFor returns a number of seconds that no other process sleeps for.
func sleepFor() string {
	return "86400." + strings.Map(func(r rune) rune { return '0' + r%10 }, rand.Text())
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for text, want := range map[string]Info{
		"true":                      {State: Completed},
		"exit 3":                    {State: Failed, Exit: 3},
		"echo hi":                   {State: Completed, Printed: Printed{Out: 3}},
		"echo hi >&2; exit 1":       {State: Failed, Exit: 1, Printed: Printed{Err: 3}},
		"kill -SEGV $$":             {State: Failed, Exit: 139, Signal: "SIGSEGV"},
		"sh -c 'kill -SEGV $$'; :":  {State: Completed},
		"sh -c 'kill -SEGV $$' 2>f": {State: Failed, Exit: 139, Signal: "SIGSEGV"},
		"sh -c 'kill -9 $$' 2>f":    {State: Failed, Exit: 137, Signal: "SIGKILL"},
		"exit 143":                  {State: Failed, Exit: 143},
		"exit 255":                  {State: Failed, Exit: 255},
	} {
		got, _, stderr := s.run(t, text)
		if strings.HasPrefix(text, "sh") {
			got.Err = 0 // bash reports the signal, in words of its own
		}
		if got.State != want.State || got.Exit != want.Exit || got.Signal != want.Signal || got.Out != want.Out || got.Err != want.Err {
			t.Errorf("%s: %+v %q, want %+v", text, got, stderr, want)
		}
		if got.Start.IsZero() || got.End.Before(got.Start) || got.Command != text || !filepath.IsAbs(got.Log) {
			t.Errorf("%s: record is not complete: %+v", text, got)
		}
	}
}

// A child in the background that holds the output open does not delay the answer, and does not survive it.
func TestLeftBehind(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	word := sleepFor()
	for text, want := range map[string]int{
		"sleep " + word + " & echo hi":                                      1,
		"(setsid sleep " + word + " &); echo hi":                            1,
		"(trap '' TERM HUP; setsid sleep " + word + " &); echo hi":          1,
		"(env -i setsid sleep " + word + " </dev/null >&- 2>&- &); echo hi": 1,
		"sleep " + word + " & sleep " + word + " & echo hi":                 2,
		"echo hi": 0,
	} {
		i, stdout, _ := s.run(t, text)
		if i.State != Completed || stdout != "hi\n" || i.Left != want {
			t.Errorf("%s: %s, %q, %d left, want %d", text, i.State, stdout, i.Left, want)
		}
		noneAlive(t, word)
	}
}

// Output that comes just after the direct child has ended is not lost.
func TestLateOutput(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.limits.late = hang
	i, stdout, _ := s.run(t, "(while kill -0 $$ 2>/dev/null; do :; done; echo late) & echo early")
	if stdout != "early\nlate\n" || i.Left != 0 {
		t.Errorf("got %q, %d left", stdout, i.Left)
	}
}

// At the deadline the tree is ended, also one that ignores SIGTERM, holds the output and goes on printing.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.limits.grace = 100 * time.Millisecond
	word := sleepFor()
	j := s.start(t, Command{
		Text: "trap '' TERM; echo ready; (setsid sh -c 'trap \"\" TERM HUP; while :; do echo x; done' " + word + " &); sleep " + word,
	})
	defer j.Release()
	s.printed(t, j, "ready\nx\n")
	j.timer.Reset(0)
	i, err := j.Wait(t.Context(), never)
	must(t, err)
	if i.State != TimedOut || i.Left != 0 {
		t.Errorf("state %s, %d left", i.State, i.Left)
	}
	noneAlive(t, word)
	if !strings.HasPrefix(s.merged(t, j), "ready\n") && i.Out == 0 {
		t.Error("the output so far is gone")
	}

	j = s.start(t, Command{Text: "exec sleep " + word, Timeout: 50 * time.Millisecond})
	defer j.Release()
	if i, err = j.Wait(t.Context(), never); err != nil || i.State != TimedOut {
		t.Errorf("with a time of its own: state %s, %v", i.State, err)
	}
}

// The answer may not come later than 2.5 s after a deadline, so the parts of an ending must add up to less.
func TestEndingFitsItsLimit(t *testing.T) {
	t.Parallel()
	l := defaultLimits()
	if sum := l.grace + 400*time.Millisecond + l.tick; sum >= 2500*time.Millisecond {
		t.Errorf("an ending may take %v", sum)
	}
}

func TestCancelEndsTheTree(t *testing.T) {
	t.Parallel()
	cause := errors.New("the client sent a cancel")
	for name, cancelled := range map[string]string{"wait": "wait", "start": "start"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			word := sleepFor()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			waitCtx, startCtx := ctx, t.Context()
			if cancelled == "start" {
				waitCtx, startCtx = t.Context(), ctx
			}
			root, err := os.OpenRoot(s.dir)
			must(t, err)
			defer root.Close()
			j, err := s.Start(startCtx, Command{Text: "(setsid sleep " + word + " &); echo ready; sleep " + word, Dir: root})
			must(t, err)
			defer j.Release()
			s.printed(t, j, "ready")
			cancel(cause)
			i, err := j.Wait(waitCtx, never)
			if cancelled == "wait" && !errors.Is(err, cause) || cancelled == "start" && err != nil {
				t.Errorf("error %v", err)
			}
			if i.State != Killed {
				t.Errorf("state %s", i.State)
			}
			noneAlive(t, word)
		})
	}
}

func TestWaitUntil(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "echo ready; until [ -e go ]; do sleep 0.01; done; echo end"})
	defer j.Release()
	i, err := j.Wait(t.Context(), time.Now())
	must(t, err)
	if i.State != Running || !i.End.IsZero() {
		t.Errorf("at once: %+v", i)
	}
	s.file(t, "go")
	i, err = j.Wait(t.Context(), time.Now().Add(hang))
	must(t, err)
	if out, _ := j.Last(); i.State != Completed || out != "end" {
		t.Errorf("at the end: %s, last line %q", i.State, out)
	}
	// An end that is there already counts more than a ctx that has ended.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if i, err = j.Wait(ended, never); err != nil || i.State != Completed {
		t.Errorf("afterwards: %s, %v", i.State, err)
	}
}

// The merged output has the order of arrival where it can be told.
func TestOrderOfStreams(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "for i in 1 2 3; do echo err$i >&2; until [ -e e$i ]; do :; done; echo out$i; until [ -e o$i ]; do :; done; done"})
	defer j.Release()
	for _, i := range []string{"1", "2", "3"} {
		waitFor(t, "err"+i, func() bool { _, errs := j.Last(); return errs == "err"+i })
		s.file(t, "e"+i)
		waitFor(t, "out"+i, func() bool { out, _ := j.Last(); return out == "out"+i })
		s.file(t, "o"+i)
	}
	_, err := j.Wait(t.Context(), never)
	must(t, err)
	want := "err1\nout1\nerr2\nout2\nerr3\nout3\n"
	if got := s.merged(t, j); got != want {
		t.Errorf("got %q", got)
	}
	if log, _ := os.ReadFile(j.Info().Log); string(log) != want {
		t.Errorf("the log holds %q", log)
	}
}

// A command that opens its own output anew cuts it off; what came before is in the log, what comes after, too.
func TestOutputTruncatedByCommand(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "echo one two three; until [ -e go ]; do :; done; : > /dev/stdout; echo four"})
	defer j.Release()
	s.printed(t, j, "three")
	s.file(t, "go")
	i, err := j.Wait(t.Context(), never)
	must(t, err)
	if got := s.merged(t, j); got != "one two three\nfour\n" {
		t.Errorf("got %q", got)
	}
	if i.Out != int64(len("one two three\nfour\n")) {
		t.Errorf("%d bytes", i.Out)
	}
}

func TestReleaseAndKeep(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, keep := range []bool{false, true} {
		j := s.start(t, Command{Text: "echo hi"})
		i, err := j.Wait(t.Context(), never)
		must(t, err)
		if keep {
			j.Keep()
		}
		j.Release()
		j.Release()
		_, err = os.Stat(i.Log)
		if keep != (err == nil) {
			t.Errorf("keep %t, log: %v", keep, err)
		}
		if _, err := s.Output(t.Context(), i.ID, 0, 10); !errors.Is(err, ErrUnknown) {
			t.Errorf("released command: %v", err)
		}
	}
	if files := s.files(t); len(files) != 1 || len(s.board.values) != 0 {
		t.Errorf("files %v and records %v are left", files, s.board.values)
	}
}

// An ended job left its output three times, until its server ended: the two spools, and the log that has all of them.
func TestEndedJobHasOneFile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "echo out; echo err >&2", Background: true})
	i, err := j.Wait(t.Context(), never)
	must(t, err)
	if files := s.files(t); len(files) != 1 {
		t.Errorf("files %v are left", files)
	}
	if c, err := s.Output(t.Context(), i.ID, 0, 100); err != nil || c.Head != "out\nerr\n" {
		t.Errorf("output %q, %v", c.Head, err)
	}
}

// What commands in the foreground print is echoed as it comes; what a job prints is not.
func TestEcho(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var echo strings.Builder
	s.echo = &echo
	for _, background := range []bool{false, true} {
		j := s.start(t, Command{Text: "echo out; echo err >&2", Background: background})
		if _, err := j.Wait(t.Context(), never); err != nil {
			t.Fatal(err)
		}
	}
	if echo.String() != "out\nerr\n" {
		t.Errorf("echoed: %q", &echo)
	}
}

// A caller that is done with a command which still runs ends it.
func TestReleaseEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	word := sleepFor()
	j := s.start(t, Command{Text: "echo ready; sleep " + word})
	s.printed(t, j, "ready")
	j.Release()
	noneAlive(t, word)
	if files := s.files(t); len(files) > 0 {
		t.Errorf("files %v", files)
	}
}

func TestFilesAreTheUsersOwn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: "umask 0; echo ready; until [ -e go ]; do :; done"})
	defer j.Release()
	s.printed(t, j, "ready")
	info, err := os.Stat(s.Shell.dir)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v", info.Mode())
	}
	for _, name := range s.files(t) {
		info, err := os.Stat(filepath.Join(s.Shell.dir, name))
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
	s.file(t, "go")
	_, err = j.Wait(t.Context(), never)
	must(t, err)
}

func TestStartThatFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.script.path = "/no/such/shell"
	if _, err := s.Start(t.Context(), Command{Text: "true"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if files := s.files(t); len(files) > 0 || len(s.board.values) > 0 || len(s.jobs) > 0 {
		t.Errorf("left: files %v, records %v, jobs %v", files, s.board.values, s.jobs)
	}
}

// If the Board does not answer, nothing is started.
func TestStartNeedsTheBoard(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.board.fail(errDown)
	if _, err := s.Start(t.Context(), Command{Text: "true"}); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(s.Shell.dir); err == nil {
		t.Error("files were made")
	}
	if _, err := s.List(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("List: %v", err)
	}
}

// BenchmarkCommand is what a command costs that does nothing, from Start to Release; plain bash takes some 2 ms of it.
func BenchmarkCommand(b *testing.B) {
	s, err := New(Options{Dir: b.TempDir(), Board: newBoard()})
	if err != nil {
		b.Skip(err)
	}
	defer s.Close()
	for b.Loop() {
		j, err := s.Start(b.Context(), Command{Text: "true"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := j.Wait(b.Context(), never); err != nil {
			b.Fatal(err)
		}
		j.Release()
	}
}
