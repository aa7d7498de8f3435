package filestate_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"codehand/filestate/leaktest"
)

// changing are the system calls that a change makes besides reading.
const changing = "openat,write,pwrite64,ftruncate,fsync,fchmod,fchown,fsetxattr,mkdirat,renameat,renameat2,unlinkat,linkat,close,flock"

// A process that is killed at a system call of a change (by default at every third) leaves old or new, as one that is
// killed between two steps.
func TestKilledAtEverySystemCall(t *testing.T) {
	leaktest.Elsewhere(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is not installed")
		}
		t.Skip("strace is not installed")
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := trials()[2]
	if !leaktest.Long() {
		c = trials()[0]
	}
	at, step := 1, leaktest.Rounds(3, 1)
	for ; killTrial(t, c, at, func(d keptDesk, locks string) (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+changing,
			"-e", "inject="+changing+":signal=KILL:when="+strconv.Itoa(at), // counted for each thread
			self, childMark, "trial", d.dir, locks, c.name+"/1000000")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewScanner(out)
	}); at += step {
	}
	t.Logf("killed at %d system calls", at/step)
	if at < 20 {
		t.Errorf("killed at %d system calls only", at/step)
	}
}
