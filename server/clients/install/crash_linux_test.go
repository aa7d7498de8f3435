package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// changing are the system calls that change something, or begin to.
const changing = "openat,write,pwrite64,ftruncate,fsync,fchmod,fchmodat,fchown,fsetxattr,mkdirat,renameat,renameat2," +
	"unlinkat,linkat,flock,close"

// TestKilledAtCalls kills an install and an uninstall at their system calls, by default at every third: the
// file is the old or the new one, and goes on to be changed and taken back.
func TestKilledAtCalls(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("strace is not installed, which kills at a system call")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const first = "{\n  // mine\n  \"mcpServers\": {\"files\": {\"command\": \"npx\"}}\n}\n"
	for _, c := range []struct{ first, what string }{{first, "install"}, {"", "install"}, {first, "uninstall"}, {"", "uninstall"}} {
		killed, made := 0, 0
		for n := 1; ; n += leaktest.Rounds(3, 1) {
			p, file := laid(t, c.first, c.what)
			change, err := planOf(p, c.what)
			if err != nil {
				t.Fatal(err)
			}
			was, is := change.Files[0].Old, change.Files[0].New
			cmd := exec.Command(strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+changing, "-e",
				"inject="+changing+":signal=KILL:when="+strconv.Itoa(n), program, killedMark, c.what, p.Root, p.State, "never")
			out, err := cmd.CombinedOutput()
			if err == nil {
				break // no thread makes so many calls
			}
			if strings.Contains(string(out), "ptrace") && os.Getenv("CI") == "" {
				t.Skipf("strace may trace nothing here: %s", out)
			}
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() > 0 && exit.ExitCode() != 137 {
				t.Fatalf("call %d: %v\n%s", n, err, out)
			}
			killed++
			now, _, err := readFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(now) == string(is) {
				made++
			} else if string(now) != string(was) {
				t.Fatalf("call %d: it leaves\n%s", n, now)
			}
			apply(t, p, "install")
			apply(t, p, "uninstall")
			if now, _, err = readFile(file); err != nil || string(now) != c.first {
				t.Fatalf("call %d: uninstalled, the file is, %v\n%s", n, err, now)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".codehand*"))
			if err != nil || len(left) > 0 {
				t.Fatalf("call %d: it leaves %q, %v", n, left, err)
			}
		}
		t.Logf("%s of %d bytes: killed %d times, made %d times", c.what, len(c.first), killed, made)
		if made == 0 || made == killed {
			t.Errorf("%s of %d bytes: killed %d times, made %d times: the kills did not hit the change", c.what,
				len(c.first), killed, made)
		}
	}
}
