package sandbox

import (
	"cmp"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/kernel"
)

// closeOnExec keeps files from the child that the server itself was born with. Go opens its own so already.
func closeOnExec() {
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11
		closeEachOnExec()
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

// limits returns the resource limits of a command and the mark of its tree.
func limits(m mark, level Level, own Limits, p *Profile) []kernel.Limit {
	atMost := func(resource int, n uint64) kernel.Limit { return kernel.Limit{Resource: resource, Soft: n, Hard: n} }
	list := []kernel.Limit{
		// Only the soft limit, so that a codehand below this one can mark its own trees.
		{Resource: unix.RLIMIT_LOCKS, Soft: m.number, Hard: math.MaxUint64},
		atMost(unix.RLIMIT_CORE, 0),
		atMost(unix.RLIMIT_FSIZE, uint64(cmp.Or(own.File, maxFile))),
		atMost(unix.RLIMIT_NOFILE, maxOpen),
	}
	if own.CPU > 0 {
		list = append(list, atMost(unix.RLIMIT_CPU, uint64((own.CPU+time.Second-1)/time.Second)))
	}
	if n := threads(); p != nil && level >= LevelFull {
		// A user namespace counts its own.
		list = append(list, atMost(unix.RLIMIT_NPROC, uint64(cmp.Or(p.Processes, moreProcesses))))
	} else if n > 0 {
		list = append(list, atMost(unix.RLIMIT_NPROC, n+moreProcesses))
	}
	return list
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
