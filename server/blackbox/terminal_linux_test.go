package blackbox

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestTerminal: a person at a terminal sees the output of a command as it comes, and once; diffs have colours, but not with
// NO_COLOR; and `classify` says what it waits for.
func TestTerminal(t *testing.T) {
	t.Parallel()
	script := terminal(t)
	program, work, home := replaytest.Program(t), leaktest.Dir(t), leaktest.Dir(t)
	must(t, os.WriteFile(filepath.Join(work, "a.diff"), []byte("@@ -1 +1 @@\n-old\n+new\nend\n"), 0o600))
	on := func(env, line string) *exec.Cmd {
		cmd := exec.Command(script, "-qec", program+" "+line, "/dev/null")
		cmd.Dir = work
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home, "TERM=xterm", "SHELL=/bin/sh", env}
		return cmd
	}

	// The command ends only after its first line was seen.
	cmd := on("X=", `call run_shell command='echo first; until test -e seen; do sleep 0.05; done; echo last; exit 3'`)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, leaktest.Start(cmd))
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	must(t, err)
	must(t, os.WriteFile(filepath.Join(work, "seen"), nil, 0o600))
	rest, err := io.ReadAll(lines)
	must(t, err)
	_ = cmd.Wait() // exit code 1
	got := strings.ReplaceAll(first+string(rest), "\r\n", "\n")
	if want := "first\nlast\nCOMMAND_FAILED: Command failed (exit code 3)\n"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}

	const coloured = "\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\nend\n"
	const plain = "@@ -1 +1 @@\n-old\n+new\nend\n"
	for _, c := range []struct{ env, line, want string }{
		{"X=", `call run_shell command='cat a.diff'`, coloured},
		{"NO_COLOR=1", `call run_shell command='cat a.diff'`, plain},
		{"TERM=dumb", `call run_shell command='cat a.diff'`, plain},
		{"X=", `call run_shell command='cat a.diff' | cat`, plain},
		{"X=", `call run_shell command=true`, "(no output)\n"},
	} {
		text, _ := on(c.env, c.line).CombinedOutput() // the text says what it is
		if got := strings.ReplaceAll(string(text), "\r\n", "\n"); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.env, c.line, got, c.want)
		}
	}
	cmd = on("X=", "classify")
	cmd.Stdin = strings.NewReader("ls\n\x04")
	text, _ := cmd.CombinedOutput()
	if !strings.Contains(string(text), "reading commands from standard input") || !strings.Contains(string(text), "readonly") {
		t.Errorf("classify on a terminal: %q", text)
	}
}

// terminal is the program that gives another one a terminal.
func terminal(t *testing.T) string {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("script is missing: add bsdutils to the programs of .ci/run")
		}
		t.Skip("script is not installed (Debian: bsdutils), so there is no terminal to try")
	}
	return script
}
