package sandbox

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/kernel"
)

// nested starts a process in the place of a helper that moves, as leader of a group, with theirs, the other end of its
// socket, in the hands of the test.
func nested(t *testing.T) (h *helper, theirs *os.File) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.SetNonblock(ends[0], true))
	s := &socket{file: os.NewFile(uintptr(ends[0]), "helper")}
	h = &helper{level: LevelFull, nested: true, socket: s, messages: bufio.NewReader(s)}
	h.process = sleeper(t, &syscall.SysProcAttr{Setpgid: true})
	return h, os.NewFile(uintptr(ends[1]), "theirs")
}

func sleeper(t *testing.T, attr *syscall.SysProcAttr) *os.Process {
	t.Helper()
	path, err := exec.LookPath("sleep")
	must(t, err)
	p, err := os.StartProcess(path, []string{"sleep", "86400"}, &os.ProcAttr{Sys: attr})
	must(t, err)
	return p
}

func collected(pid int) func() bool {
	return func() bool { _, there := statOf(pid); return !there }
}

// A helper that was killed during its move reported its new cgroup late, and that cgroup's processes survived.
func TestAbandonMovedLate(t *testing.T) {
	t.Parallel()
	h, theirs := nested(t)
	first, moved := h.process.Pid, sleeper(t, &syscall.SysProcAttr{Setsid: true})
	done := make(chan struct{})
	go func() { defer close(done); h.abandon() }()
	waitFor(t, "the first one is killed", func() bool { s, _ := statOf(first); return s.dead })
	line, _ := json.Marshal(kernel.Message{Kind: kernel.Moved, Pid: moved.Pid})
	_, err := theirs.Write(append(line, '\n'))
	must(t, err)
	waitFor(t, "the moved one is killed", func() bool { return !running(moved.Pid) })
	must(t, theirs.Close())
	waitFor(t, "the first one is collected", collected(first))
	waitFor(t, "the moved one is collected", collected(moved.Pid))
	<-done
}

// A helper that was killed before it reported its new cgroup left a child that the server did not know.
func TestAbandonNeverNamed(t *testing.T) {
	t.Parallel()
	h, theirs := nested(t)
	first := h.process.Pid
	moved := sleeper(t, &syscall.SysProcAttr{Setpgid: true, Pgid: first})
	other := sleeper(t, &syscall.SysProcAttr{Setpgid: true})
	must(t, theirs.Close())
	h.abandon()
	waitFor(t, "the first one is collected", collected(first))
	waitFor(t, "the moved one is collected", collected(moved.Pid))
	if !running(other.Pid) {
		t.Error("a child of another group was ended")
	}
	must(t, other.Kill())
	_, _ = other.Wait() // it was killed
}

// A helper that was killed before it told that the command runs left the command.
func TestAbandonBegun(t *testing.T) {
	t.Parallel()
	h, theirs := nested(t)
	h.level, h.nested, h.mark = LevelLimits, false, newMark()
	path, err := exec.LookPath("sleep")
	must(t, err)
	command, err := os.StartProcess(path, []string{"sleep", "86400"}, &os.ProcAttr{Env: []string{h.mark.variable()}, Sys: session()})
	must(t, err)
	other := sleeper(t, session())
	must(t, theirs.Close())
	h.abandon()
	waitFor(t, "the command is ended", func() bool { return !running(command.Pid) })
	_, _ = command.Wait() // it was killed, and may have been collected
	if !running(other.Pid) {
		t.Error("a process without the mark was ended")
	}
	must(t, other.Kill())
	_, _ = other.Wait() // it was killed
}

// TestMovedIsFound: until a moved helper has its instructions, it is in the group by which abandon finds it; then it
// leads its own.
func TestMovedIsFound(t *testing.T) {
	t.Parallel()
	h, theirs := nested(t)
	must(t, h.process.Kill())
	_, _ = h.process.Wait() // it was killed
	spec := &kernel.Spec{
		Level: int(LevelFull), Path: bashPath(t), Args: []string{"bash", "-c", "read x"}, Profile: &Profile{},
		Identity: [2]int{os.Geteuid(), os.Getegid()}, Nested: true,
	}
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	h.process, err = os.StartProcess("/proc/self/exe", kernel.Argv(kernel.LevelFull), &os.ProcAttr{
		Env: kernel.Environ(), Files: []*os.File{r, w, w, theirs}, Sys: session(),
	})
	must(t, err)
	must(t, theirs.Close())
	must(t, h.instruct(spec))
	m, err := h.next()
	must(t, err)
	if m.Kind != kernel.Moved {
		h.abandon()
		cannot(t, startError(m))
	}
	if s, ok := statOf(m.Pid); !ok || s.group != h.process.Pid {
		t.Errorf("the moved helper is in group %d, want %d", s.group, h.process.Pid)
	}
	first := h.process
	moved, err := os.FindProcess(m.Pid)
	must(t, err)
	h.first, h.process, spec.Nested = first, moved, false
	must(t, h.instruct(spec))
	if m, err = h.next(); err != nil || m.Kind != kernel.Started {
		t.Errorf("got %+v, %v", m, err)
	}
	if s, ok := statOf(h.process.Pid); !ok || s.group != h.process.Pid {
		t.Errorf("the moved helper is in group %d, want its own", s.group)
	}
	h.abandon()
	waitFor(t, "all are collected", func() bool { return collected(first.Pid)() && collected(h.process.Pid)() })
}
