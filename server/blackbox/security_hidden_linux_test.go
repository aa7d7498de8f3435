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

// A rule that denied rm was passed by commands in subscripts, arithmetic and options: the file was gone. A rule with a
// star for the program before it covered them.
func TestHiddenCommands(t *testing.T) {
	t.Parallel()
	program := replaytest.Program(t)
	work, home := leaktest.Dir(t), leaktest.Dir(t)
	victim := filepath.Join(work, "x")
	run := func(command string, flags ...string) string {
		args := append([]string{"call", "run_shell", "command=" + command, "--state-dir=" + filepath.Join(leaktest.Dir(t), "state")}, flags...)
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "PATH=/bin:/usr/bin", "XDG_STATE_HOME=" + home}
		out, _ := cmd.CombinedOutput() // the text says what it is
		return string(out)
	}
	for _, command := range leaktest.Some(3, []string{
		`test -v 'a[$(rm x)]'`, `v='a[$(rm x)]'; echo $((v))`, `v='$(rm x)'; echo ${v@P}`,
		`v='a[$'; w='(rm x)]'; v=$v$w; echo $((v))`, `setpriv --nnp rm x`, `split --filter='rm x' /etc/hostname`,
		`awk 'BEGIN{system("rm x")}'`, `! ! rm x`,
	}) {
		if err := os.WriteFile(victim, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		out := run(command, "--permissions-deny=Bash(rm *)", "--permissions-mode=bypassPermissions")
		if _, err := os.Stat(victim); err != nil || !strings.Contains(out, "Permission denied") {
			t.Errorf("%s: with rm denied: %v\n%s", command, err, out)
		}
	}
	for _, c := range leaktest.Some(2, [][2]string{
		{"Bash(unset *)", `unset 'a[$(rm x)]'`}, {"Bash(sqlite3 *)", `sqlite3 y '.shell rm x'`}, {"Bash(ls *)", `case a in $(rm x)) ls;; esac`},
		{"Bash(npm run *)", "npm run y --script-shell=./x"}, {"Bash(npx *)", "npx rm x"},
	}) {
		if err := os.WriteFile(victim, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		out := run(c[1], "--permissions-allow="+c[0], "--permissions-mode=dontAsk")
		if _, err := os.Stat(victim); err != nil || !strings.Contains(out, "Permission denied") {
			t.Errorf("%s with %s: %v\n%s", c[1], c[0], err, out)
		}
	}
	if out := run("git --version && printf '%s' 'a[$(rm x)]'", "--permissions-deny=Bash(rm *)", "--permissions-mode=bypassPermissions"); !strings.Contains(out, "a[$(rm x)]") {
		t.Errorf("text is no command: %s", out)
	}
}
