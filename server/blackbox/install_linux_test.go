package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// TestInstallOnTerminal: a person is asked for the client, for the directory that it may work in, and before a file is
// written; without a yes nothing is.
func TestInstallOnTerminal(t *testing.T) {
	t.Parallel()
	script := terminal(t)
	program, work := replaytest.Program(t), leaktest.Dir(t)
	for _, c := range []struct{ name, line, answers, shown, written string }{
		{"agreed", "install claude-desktop", work + "\ny\n", "Which directory may claude-desktop work in?", work},
		{"in the home directory", "install claude-desktop", "~\nyes\n", "Write this? [y/N]", "HOME"},
		{"not agreed", "install claude-desktop", work + "\n\n", "claude-desktop stays as it was", ""},
		{"not answered", "install claude-desktop", "", "not answered, so nothing was written", ""},
		{"no directory given", "install claude-desktop", "\n", "left out: claude-desktop", ""},
		{"one of two answered", "install claude-desktop cursor " + work, "y\n", "so only this was written: ", work},
		{"no directory", "install claude-desktop", "/no/such\n", `"/no/such" is no directory`, ""},
		{"nobody is here", "install", "", "none was found on this machine of: claude-code", ""},
		{"chosen", "install", "claude-desktop\n" + work + "\ny\n", "Which one?", work},
		{"no client", "install", "claude-dsktop\n", "did you mean claude-desktop?", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := leaktest.Dir(t)
			cmd := exec.Command(script, "-qec", program+" "+c.line, "/dev/null")
			cmd.Dir, cmd.Stdin = work, strings.NewReader(c.answers)
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(home, "state"),
				"TERM=dumb", "SHELL=/bin/sh", "TMPDIR=" + home} // the program must not lie there
			out, _ := cmd.CombinedOutput() // what it shows says how it ended
			if !strings.Contains(string(out), c.shown) {
				t.Errorf("shown:\n%s\nwithout %q", out, c.shown)
			}
			if c.written == "HOME" {
				c.written = home
			}
			text, err := os.ReadFile(filepath.Join(home, ".config", "Claude", "claude_desktop_config.json"))
			if c.written == "" {
				if !os.IsNotExist(err) {
					t.Errorf("written: %q, %v", text, err)
				}
			} else if !strings.Contains(string(text), "\"stdio\",\n        \""+c.written+"\"") {
				t.Errorf("written: %s, %v", text, err)
			}
		})
	}
}
