package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// enter names dir so that the child enters the directory that is open, whatever happened to its path: the child's
// /proc/self/fd still has the server's files when it changes directory, since they are closed at exec only.
func enter(dir *os.File) string { return "/proc/self/fd/" + strconv.FormatUint(uint64(dir.Fd()), 10) }

// closeOnExec keeps files from the child that the server itself was born with. Go opens its own so already.
func closeOnExec() {
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeEachOnExec()
	}
}

// born starts a child that has its limits and the mark m before its first instruction. Set later, they can be too late
// for a daemon on a busy machine; set on this process for the moment of the fork, they would also be those of a program
// that somebody else starts at that moment. So the child is traced until it has become the program, where the kernel
// stops it, and let go at once. Where tracing is forbidden (Yama, a container), the limits come just after the start.
func born(c Cmd, attr *os.ProcAttr, m mark) (*os.Process, error) {
	runtime.LockOSThread() // the thread that starts a traced child is its tracer
	defer runtime.UnlockOSThread()
	attr.Sys.Ptrace = true
	child, err := os.StartProcess(c.Path, c.argv(), attr)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		attr.Sys.Ptrace = false
		child, err = os.StartProcess(c.Path, c.argv(), attr)
	}
	if err != nil {
		return nil, err
	}
	if attr.Sys.Ptrace {
		awaitStop(child.Pid)
	}
	limit(child.Pid, m, c.Limits)
	if !attr.Sys.Ptrace {
		return child, nil
	}
	// ESRCH: it was killed meanwhile, which Wait tells.
	if err := unix.PtraceDetach(child.Pid); err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = child.Kill()
		_, _ = child.Wait() // the error is that it could not be let go
		return nil, fmt.Errorf("let go of %s: %w", c.Path, err)
	}
	return child, nil
}

// awaitStop returns when a traced child has stopped or ended, without collecting it.
func awaitStop(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

const (
	// maxFile is RLIMIT_FSIZE in bytes. It counts the offset, also in a spool file whose middle was released, so it
	// must lie above the 5 GiB at which tools/shell ends a command.
	maxFile = 6 << 30
	// maxOpen is RLIMIT_NOFILE.
	maxOpen = 4096
	// moreProcesses is how many processes may come to those that the machine has. RLIMIT_NPROC counts all threads of
	// the user, so a fixed number would forbid any fork on a busy desktop. It has no effect for root.
	moreProcesses = 512
)

// limit puts resource limits on a child, and the mark of its tree. A limit that cannot be set
// (a hard limit below it, a kernel that forbids prlimit) is left as it is: the level promises no more.
func limit(pid int, m mark, own Limits) {
	// Only the soft limit, so that a codehand below this one can mark its own trees.
	var old unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &old) == nil {
		_ = unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: min(m.number, old.Max), Max: old.Max}, nil)
	}
	atMost := func(resource int, n uint64) {
		var old unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &old) == nil {
			n = min(n, old.Max)
			_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
		}
	}
	atMost(unix.RLIMIT_CORE, 0)
	atMost(unix.RLIMIT_FSIZE, uint64(cmp.Or(own.File, maxFile)))
	atMost(unix.RLIMIT_NOFILE, maxOpen)
	if own.Memory > 0 {
		atMost(unix.RLIMIT_AS, uint64(own.Memory))
	}
	if own.CPU > 0 {
		atMost(unix.RLIMIT_CPU, uint64((own.CPU+time.Second-1)/time.Second))
	}
	if n := threads(); n > 0 {
		atMost(unix.RLIMIT_NPROC, n+moreProcesses)
	}
	// The command goes before the server when memory runs out.
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}

// threads returns how many threads the machine has, the number after the slash in /proc/loadavg; 0: unknown.
func threads() uint64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "/")
	number, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.ParseUint(number, 10, 64) // 0: not as expected
	return n
}

// Hide keeps other processes of the same user, such as the commands that this one starts, from reading its environment
// and its memory. It is for the start of a server, since it also forbids debuggers and core dumps.
func Hide() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
