//go:build unix

package sandbox

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// session gives the child a session and process group of its own.
func session() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// exitOf translates what wait said. err: the child could not be waited for.
func exitOf(state *os.ProcessState, err error) Exit {
	if err != nil {
		return Exit{Code: -1}
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return Exit{Code: state.ExitCode()}
	}
	return Exit{Code: 128 + int(status.Signal()), Signal: SignalName(int(status.Signal()))}
}

// SignalName returns the name of signal n ("SIGSEGV"); "": there is none.
func SignalName(n int) string { return unix.SignalName(syscall.Signal(n)) }

// closeEachOnExec is for systems that cannot do it in one step. A file that was closed or opened meanwhile does no
// harm: all of ours are closed on exec.
func closeEachOnExec() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)   // what could be read counts
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// readNow reads what a pipe holds, whatever its deadline; io.EOF: nothing. Its file does not block, or it had no
// deadline.
func readNow(f *os.File, b []byte) (n int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	// Read of conn would look at the deadline, too.
	closed := conn.Control(func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			n, err = unix.Read(int(fd), b)
		}
	})
	switch {
	case closed != nil:
		return 0, closed
	case errors.Is(err, unix.EAGAIN), err == nil && n == 0 && len(b) > 0:
		return 0, io.EOF
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	}
	return n, nil
}
