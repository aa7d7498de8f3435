package blackbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"codehand/server/replaytest"
)

// A tracer sees the system calls of the program before they happen, and lets one of them fail or be the last. It counts
// over all threads: strace, which does the same, counts for each one, and a Go program's calls move between them.
//
// It takes root: the program lets no other user trace it.
type tracer struct {
	t     *testing.T
	pid   int
	ended sync.WaitGroup

	mu    sync.Mutex
	calls map[uint64]string     // that count, by number; nil: none
	stop  func(n int, c traced) // is asked before the n-th of them; see kill and fail
	seen  int
	fault syscall.Errno // that the call which was asked about gets
}

// A traced is a system call: its name, and the files that it is about as far as they have a name.
type traced struct{ name, path string }

func (c traced) String() string { return c.name + " " + c.path }

// traceable are the calls that can be asked about, with how their arguments name files: 'f' is a descriptor, 'd' a
// directory whose name follows, 'p' a path, '-' is something else.
var traceable = map[string]struct {
	number uint64
	args   string
}{
	"openat": {syscall.SYS_OPENAT, "d"}, "write": {syscall.SYS_WRITE, "f"}, "pwrite64": {syscall.SYS_PWRITE64, "f"},
	"ftruncate": {syscall.SYS_FTRUNCATE, "f"}, "fsync": {syscall.SYS_FSYNC, "f"}, "fchmod": {syscall.SYS_FCHMOD, "f"},
	"fchown": {syscall.SYS_FCHOWN, "f"}, "fsetxattr": {syscall.SYS_FSETXATTR, "f"}, "mkdirat": {syscall.SYS_MKDIRAT, "d"},
	"renameat": {syscall.SYS_RENAMEAT, "d-d"}, "renameat2": {316, "d-d"}, "unlinkat": {syscall.SYS_UNLINKAT, "d"},
	"linkat": {syscall.SYS_LINKAT, "d-d"}, "close": {syscall.SYS_CLOSE, "f"}, "flock": {syscall.SYS_FLOCK, "f"},
	"openat2": {437, "d"}, "fstat": {syscall.SYS_FSTAT, "f"}, "newfstatat": {syscall.SYS_NEWFSTATAT, "d"}, "read": {syscall.SYS_READ, "f"},
	"pread64": {syscall.SYS_PREAD64, "f"}, "readlinkat": {syscall.SYS_READLINKAT, "d"}, "getdents64": {syscall.SYS_GETDENTS64, "f"},
	"fgetxattr": {syscall.SYS_FGETXATTR, "f"}, "flistxattr": {syscall.SYS_FLISTXATTR, "f"},

	"open": {syscall.SYS_OPEN, "p"}, "stat": {syscall.SYS_STAT, "p"}, "lstat": {syscall.SYS_LSTAT, "p"}, "access": {syscall.SYS_ACCESS, "p"},
	"execve": {syscall.SYS_EXECVE, "p"}, "chdir": {syscall.SYS_CHDIR, "p"}, "readlink": {syscall.SYS_READLINK, "p"}, "statfs": {syscall.SYS_STATFS, "p"},
	"getxattr": {syscall.SYS_GETXATTR, "p"}, "lgetxattr": {syscall.SYS_LGETXATTR, "p"}, "listxattr": {syscall.SYS_LISTXATTR, "p"},
	"llistxattr": {syscall.SYS_LLISTXATTR, "p"}, "inotify_add_watch": {syscall.SYS_INOTIFY_ADD_WATCH, "-p"}, "faccessat": {syscall.SYS_FACCESSAT, "d"},
	"faccessat2": {439, "d"}, "fchmodat": {syscall.SYS_FCHMODAT, "d"}, "fchownat": {syscall.SYS_FCHOWNAT, "d"}, "utimensat": {syscall.SYS_UTIMENSAT, "d"},
	"statx": {332, "d"}, "mknodat": {syscall.SYS_MKNODAT, "d"}, "symlinkat": {syscall.SYS_SYMLINKAT, "pd"}, "name_to_handle_at": {303, "d"},
	"socket": {syscall.SYS_SOCKET, ""}, "connect": {syscall.SYS_CONNECT, ""}, "sendto": {syscall.SYS_SENDTO, ""}, "sendmsg": {syscall.SYS_SENDMSG, ""},
	"sendmmsg": {307, ""}, "bind": {syscall.SYS_BIND, ""},
}

// trace attaches to a running program, which leads a group of processes, and returns when it has all threads. It ends with the program, for whose end kill
// must be called.
func (p *plot) trace(s *replaytest.Spawned) *tracer {
	p.Helper()
	tr := &tracer{t: p.T, pid: s.Cmd.Process.Pid}
	attached := make(chan error)
	tr.ended.Go(func() {
		runtime.LockOSThread() // only the thread that attached may trace; it ends with this goroutine
		err := tr.attach()
		attached <- err
		if err == nil {
			tr.run()
		}
	})
	if err := <-attached; err != nil {
		if os.Getenv("CI") != "" && os.Geteuid() == 0 {
			p.Fatalf("ptrace: %v", err)
		}
		p.Skipf("ptrace: %v; run the tests as root, in a container with --cap-add SYS_PTRACE", err)
	}
	return tr
}

// watch has stop asked before each call of that kind from now on; it may kill the program, or return the error that the
// call is to have. The calls are "open", "write" and so on, separated by commas; "": none.
func (tr *tracer) watch(calls string, stop func(n int, c traced) syscall.Errno) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.calls, tr.seen = map[uint64]string{}, 0
	for name := range strings.SplitSeq(calls, ",") {
		if c, ok := traceable[name]; ok {
			tr.calls[c.number] = name
		} else if name != "" {
			tr.t.Errorf("%s cannot be traced", name)
		}
	}
	tr.stop = func(n int, c traced) { tr.fault = stop(n, c) }
}

func (tr *tracer) attach() error {
	attached := map[int]bool{}
	for again := true; again; {
		again = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", tr.pid))
		if err != nil {
			return err
		}
		for _, e := range tasks {
			id, err := strconv.Atoi(e.Name())
			if err != nil || attached[id] {
				continue
			}
			again, attached[id] = true, true // threads that this one has started meanwhile are not ours yet
			if err := syscall.PtraceAttach(id); err == syscall.ESRCH && id != tr.pid {
				delete(attached, id) // it has ended since
				continue
			} else if err != nil {
				return err
			}
			if _, err := syscall.Wait4(id, nil, syscall.WALL, nil); err != nil {
				return err
			}
			if err := syscall.PtraceSetOptions(id, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE); err != nil {
				return err
			}
		}
	}
	for id := range attached {
		if err := syscall.PtraceSyscall(id, 0); err != nil {
			return err
		}
	}
	return nil
}

// run lets the threads go on from call to call, until all are gone. What fails in it fails because a thread was killed. It
// waits for the program's own process group alone: this thread may have started programs of other tests before it was
// locked, and would take the stops of those from their tracers, which then wait for ever.
func (tr *tracer) run() {
	entered := map[int]syscall.Errno{} // threads in a call, and the error that it gets instead of being made
	known := map[int]bool{}
	for {
		var status syscall.WaitStatus
		id, err := syscall.Wait4(-tr.pid, &status, syscall.WALL|syscall.WNOTHREAD, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return // ECHILD: no thread is left
		}
		if !status.Stopped() {
			delete(entered, id)
			continue
		}
		signal := 0
		switch sig := status.StopSignal(); {
		case sig == syscall.SIGTRAP|0x80:
			if fault, in := entered[id]; in {
				delete(entered, id)
				tr.leave(id, fault)
			} else {
				entered[id] = tr.enter(id)
			}
		case sig == syscall.SIGTRAP, sig == syscall.SIGSTOP && !known[id]: // it has started a thread, or is one
		default:
			signal = int(sig)
		}
		known[id] = true
		_ = syscall.PtraceSyscall(id, signal)
	}
}

// enter asks about a call.
func (tr *tracer) enter(id int) syscall.Errno {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var regs syscall.PtraceRegs
	if len(tr.calls) == 0 || syscall.PtraceGetRegs(id, &regs) != nil || tr.calls[regs.Orig_rax] == "" {
		return 0
	}
	c := traced{name: tr.calls[regs.Orig_rax]}
	c.path = tr.files(id, regs, traceable[c.name].args)
	tr.seen++
	tr.fault = 0
	tr.stop(tr.seen, c)
	if tr.fault != 0 {
		regs.Orig_rax = ^uint64(0) // there is no such call
		_ = syscall.PtraceSetRegs(id, &regs)
	}
	return tr.fault
}

// leave gives a call that was not made its error.
func (tr *tracer) leave(id int, fault syscall.Errno) {
	var regs syscall.PtraceRegs
	if fault == 0 || syscall.PtraceGetRegs(id, &regs) != nil {
		return
	}
	regs.Rax = -uint64(fault)
	_ = syscall.PtraceSetRegs(id, &regs)
}

// files names what the arguments of a call are about.
func (tr *tracer) files(id int, regs syscall.PtraceRegs, args string) string {
	values := []uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10}
	var names []string
	for i, kind := range args {
		if kind == '-' {
			continue
		}
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tr.pid, int32(values[i]))) // "" for the current directory
		switch kind {
		case 'p':
			name = tr.text(id, values[i])
		case 'd':
			if rel := tr.text(id, values[i+1]); filepath.IsAbs(rel) {
				name = rel
			} else {
				name = filepath.Join(name, rel)
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// text is the beginning of the string at an address of the program.
func (tr *tracer) text(id int, at uint64) string {
	b := make([]byte, 512)
	n, _ := syscall.PtracePeekData(id, uintptr(at), b)
	text, _, _ := bytes.Cut(b[:n], []byte{0})
	return string(text)
}
