package sandbox

import (
	"os"
	"syscall"
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

// A tree is the child alone: job objects are not built yet.
type tree struct {
	child id
	over  bool
}

func newTree(child *os.Process, _ mark) *tree { return &tree{child: id{pid: child.Pid}} }

func (t *tree) collected() { t.over = true }

func (t *tree) look() []member {
	if t.over {
		return nil
	}
	return []member{{id: t.child}}
}

// signal ends the process, whatever the signal: there is no other.
func (m member) signal(syscall.Signal) {
	if p, err := os.FindProcess(m.pid); err == nil {
		_ = p.Kill() // the next look shows what is left
		_ = p.Release()
	}
}

func (m member) wake() {}

func (m member) killGroup() {}

func startOf(int) uint64 { return 0 }

func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release() // only asked
	return true
}

// Hide does nothing: there is no such switch.
func Hide() error { return nil }

// born starts a child; there are neither limits nor a mark here.
func born(c Cmd, attr *os.ProcAttr, _ mark) (*os.Process, error) {
	return os.StartProcess(c.Path, c.argv(), attr)
}

// readNow is not needed: no pipe has a deadline here.
func readNow(*os.File, []byte) (int, error) { return 0, os.ErrDeadlineExceeded }
