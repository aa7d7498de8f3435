package blackbox

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestTourOnTerminal: `codehand try` waits for Enter after each step and has colours, unless NO_COLOR is set; and when
// the person or a signal ends it early, its scratch directory is gone.
func TestTourOnTerminal(t *testing.T) {
	t.Parallel()
	script := terminal(t)
	program := replaytest.Program(t)
	const steps = 7
	signal := func(s syscall.Signal) func(io.Writer, int) error {
		return func(_ io.Writer, pid int) error { return syscall.Kill(pid, s) }
	}
	for _, c := range []struct {
		name, env string
		enters    int                                 // at so many pauses the person presses Enter
		then      func(keys io.Writer, pid int) error // what happens at the next one; nil: there is none
		ends      string
	}{
		{"to the end", "X=", steps, nil, "That was all;"},
		{"without colours", "NO_COLOR=1", steps, nil, "That was all;"},
		{"Ctrl-C at the first pause", "X=", 0, func(keys io.Writer, _ int) error {
			_, err := io.WriteString(keys, "\x03")
			return err
		}, "The tour ended early;"},
		{"Ctrl-D", "X=", 5, func(keys io.Writer, _ int) error {
			_, err := io.WriteString(keys, "\x04")
			return err
		}, "The tour ended early;"},
		{"SIGTERM", "X=", 5, signal(syscall.SIGTERM), "The tour ended early;"},
		{"SIGHUP", "X=", 2, signal(syscall.SIGHUP), "The tour ended early;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			work, home, temp := leaktest.Dir(t), leaktest.Dir(t), leaktest.Dir(t)
			cmd := exec.Command(script, "-qec", "echo $$; exec "+program+" try", "/dev/null")
			cmd.Dir = work
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp, "TERM=xterm", "SHELL=/bin/sh", c.env}
			keys, err := cmd.StdinPipe()
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, leaktest.Start(cmd))
			shown := &bytes.Buffer{}
			screen := bufio.NewReader(io.TeeReader(out, shown))
			line, err := screen.ReadString('\n')
			must(t, err)
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			must(t, err)
			for range c.enters {
				untilPause(t, screen)
				_, err := io.WriteString(keys, "\n")
				must(t, err)
			}
			if c.then != nil {
				untilPause(t, screen)
				if made, err := os.ReadDir(temp); err != nil || len(made) != 1 {
					t.Errorf("at the pause there is %v in TMPDIR, not the scratch directory alone: %v", made, err)
				}
				must(t, c.then(keys, pid))
			}
			_, err = io.Copy(io.Discard, screen)
			must(t, err)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v, want exit code 0", err)
			}
			text := shown.String()
			if !strings.Contains(text, c.ends) {
				t.Errorf("it does not end with %q: %s", c.ends, text)
			}
			if got, want := strings.Contains(text, "\x1b[1m1/7") || strings.Contains(text, "\x1b[31m"), c.enters > 0 && c.env == "X="; got != want {
				t.Errorf("colours: %v, want %v: %q", got, want, text)
			}
			for _, dir := range []string{work, home, temp} {
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("%s: left behind: %v %v", filepath.Base(dir), left, err)
				}
			}
		})
	}
}

// untilPause reads what the tour shows up to where it waits for a key.
func untilPause(t *testing.T, screen *bufio.Reader) {
	t.Helper()
	for {
		text, err := screen.ReadString(']')
		if err != nil {
			t.Fatalf("the tour ended before it waited for a key: %v", err)
		}
		if strings.HasSuffix(text, "[Enter goes on, Ctrl-C ends]") {
			return
		}
	}
}

// TestGuideOnTerminal: who types codehand and nothing else learns what is here and what to type next, on standard error,
// and nothing is made anywhere.
func TestGuideOnTerminal(t *testing.T) {
	t.Parallel()
	script := terminal(t)
	work, home, temp := leaktest.Dir(t), leaktest.Dir(t), leaktest.Dir(t)
	must(t, os.Mkdir(filepath.Join(home, ".cursor"), 0o700))
	cmd := exec.Command(script, "-qec", replaytest.Program(t)+" >out", "/dev/null")
	cmd.Dir = work
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "TMPDIR=" + temp, "TERM=dumb", "SHELL=/bin/sh"}
	shown, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v, want exit code 0", err)
	}
	text := strings.ReplaceAll(string(shown), "\r\n", "\n")
	for _, want := range []string{"\n  clients  Cursor\n", "\n  sandbox  ", "\n\nNext, to connect it: codehand install cursor\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q: %s", want, text)
		}
	}
	if out, err := os.ReadFile(filepath.Join(work, "out")); err != nil || len(out) > 0 {
		t.Errorf("on standard output: %q %v", out, err)
	}
	for dir, want := range map[string]int{home: 1, temp: 0} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != want {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
