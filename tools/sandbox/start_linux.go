package sandbox

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"

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

// birth is held while a child is born with a mark. The limit belongs to this whole process, so the lock does, too.
var birth sync.Mutex

// born starts a child that has the mark m from its first instruction on: set after the start, the limit could come too
// late for a daemon on a busy machine. Only the soft limit is used, so that a codehand below this one can mark its own
// trees.
func born(m mark, start func() (*os.Process, error)) (*os.Process, error) {
	birth.Lock()
	defer birth.Unlock()
	var old unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &old); err == nil && m.number < old.Max {
		_ = unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{Cur: m.number, Max: old.Max}, nil) // the variable is left
		defer func() { _ = unix.Prlimit(0, unix.RLIMIT_LOCKS, &old, nil) }()                   // it was so before
	}
	return start()
}

const (
	// maxFile is RLIMIT_FSIZE in bytes. It counts the offset, also in a spool file whose middle was released, so it must
	// lie above the 5 GiB at which tools/shell ends a command.
	maxFile = 6 << 30
	// maxOpen is RLIMIT_NOFILE.
	maxOpen = 4096
	// moreProcesses is how many processes may come to those that the machine has. RLIMIT_NPROC counts all threads of
	// the user, so a fixed number would forbid any fork on a busy desktop. It has no effect for root.
	moreProcesses = 512
)

// limit puts resource limits on a process that was just started. A limit that cannot be set
// (a hard limit below it, a kernel that forbids prlimit) is left as it is: the level promises no more.
func limit(pid int) {
	atMost := func(resource int, n uint64) {
		var old unix.Rlimit
		if unix.Prlimit(pid, resource, nil, &old) == nil {
			n = min(n, old.Max)
			_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil)
		}
	}
	atMost(unix.RLIMIT_CORE, 0)
	atMost(unix.RLIMIT_FSIZE, maxFile)
	atMost(unix.RLIMIT_NOFILE, maxOpen)
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
