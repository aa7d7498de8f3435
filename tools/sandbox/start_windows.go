package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func session() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// exitOf translates what wait said. err: the child could not be waited for.
func exitOf(state *os.ProcessState, err error) Exit {
	if err != nil {
		return Exit{Code: -1}
	}
	return Exit{Code: state.ExitCode()}
}

// SignalName returns "": there are no signals.
func SignalName(int) string { return "" }

// enter names dir by its path.
func enter(dir *os.File) string { return dir.Name() }

func closeOnExec() {} // handles are inherited only if they are listed

// A tree is the job of a command.
type tree struct {
	child  id
	helper *helper
}

func newTree(h *helper, _ mark) *tree {
	return &tree{child: id{h.process.Pid, startOf(h.process.Pid)}, helper: h}
}

func (t *tree) childEnded(bool) {} // only a helper tells

func (t *tree) collected(bool) {}

func (t *tree) look() []member { return t.helper.members() }

// signal ends the process, whatever the signal: there is no other.
func (m member) signal(syscall.Signal) {
	p, err := os.FindProcess(m.pid)
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }() // nothing to lose
	if startOf(m.pid) == m.start {     // p holds a handle, so its number means no other process
		_ = p.Kill() // the next look shows what is left
	}
}

func (m member) wake() {}

func (m member) killGroup() {}

// startOf returns when a process was started, in units of 100 ns since 1601; 0: there is none, or it has ended.
func startOf(pid int) uint64 {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return 0
	}
	defer func() { _ = windows.CloseHandle(h) }() // only read
	if over, err := windows.WaitForSingleObject(h, 0); err == nil && over == windows.WAIT_OBJECT_0 {
		return 0
	}
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	return uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime)
}

func running(pid int) bool { return startOf(pid) != 0 }

// Hide does nothing: there is no such switch.
func Hide() error { return nil }

// readNow is not needed: no pipe has a deadline here.
func readNow(*os.File, []byte) (int, error) { return 0, os.ErrDeadlineExceeded }
