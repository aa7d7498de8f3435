package blackbox

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// With a new state directory that cannot be written the program does not start and says why: every call would fail, and only
// the log would have the cause. With one that was used before files are read, and edits are refused with the cause.
func TestStateDirectoryReadOnly(t *testing.T) {
	t.Parallel()
	p := newPlot(t)
	p.lay("a.txt", "one\n")
	p.home = filepath.Join(leaktest.Dir(t), "state")
	must(t, os.Mkdir(p.home, 0o700))
	if err := syscall.Mount("tmpfs", p.home, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		unmounted(t, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(p.home, syscall.MNT_DETACH) })
	dir := filepath.Join(p.home, "codehand")
	must(t, os.Mkdir(dir, 0o700))
	remount := func(flags uintptr) {
		t.Helper()
		// What a killed process had open may be given back a moment after it was collected.
		replaytest.Until(t, "the disk can be mounted anew", func() bool {
			err := syscall.Mount("", p.home, "", syscall.MS_REMOUNT|flags, "size=4m")
			if !errors.Is(err, syscall.EBUSY) {
				must(t, err)
			}
			return err == nil
		})
	}
	remount(syscall.MS_RDONLY)
	cmd := exec.Command(p.program, "stdio", "--state-dir="+dir, p.work)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	said, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(said), "codehand: state directory: ") || !strings.Contains(string(said), syscall.EROFS.Error()) {
		t.Errorf("a new one: %v, %s", err, said)
	}

	cmd = exec.Command(p.program, "tools", "--state-dir="+dir) // which calls nothing
	cmd.Dir, cmd.Env = p.work, []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("tools: %v, %s", err, said)
	}

	remount(0)
	s := p.start()
	p.must(s, "read_file", "file_path", "a.txt")
	p.waitForSnapshot(s, "a.txt")
	p.kill(s)
	remount(syscall.MS_RDONLY)
	s = p.start()
	p.must(s, "read_file", "file_path", "a.txt")
	text, err := s.Call("edit_file", json.RawMessage(`{"file_path":"a.txt","old_string":"one","new_string":"two"}`))
	if err != nil || !strings.HasPrefix(text, "! WRITE_FAILED") || !strings.Contains(text, syscall.EROFS.Error()) || p.held("a.txt") != "one\n" {
		t.Errorf("one that was used: %v, %s", err, text)
	}
	p.kill(s)
}
