package exchange_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"codehand/filestate/exchange"
)

// lacking runs do on a thread to which the kernel refuses those system calls with an error, as file systems that do not have
// them do. That needs no right, and the thread ends with do.
func lacking(t *testing.T, refused map[uint32]syscall.Errno, do func()) {
	t.Helper()
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	code := []unix.SockFilter{{Code: load, K: 0}} // the number of the call
	for call, err := range refused {
		code = append(code, unix.SockFilter{Code: equal, Jf: 1, K: call}, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(err)})
	}
	code = append(code, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW})
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
			// The pointer goes to the kernel, which copies what it points to during the call.
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no filter of system calls: %v", err)
		}
		t.Skipf("no filter of system calls: %v; run where seccomp(2) works to have this case", err)
	}
}

// Where a file system lacks a step, that is said so, and a new file gets its name in another way; a name that exists is never
// taken, in none of the ways.
func TestWithoutThem(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("here a plain rename may be the call that is refused; run on amd64 or arm64 to have this case")
	}
	linkless := map[uint32]syscall.Errno{unix.SYS_RENAMEAT2: unix.EINVAL, unix.SYS_LINKAT: unix.EPERM}
	for name, refused := range map[string]map[uint32]syscall.Errno{
		"EINVAL":        {unix.SYS_RENAMEAT2: unix.EINVAL},
		"ENOSYS":        {unix.SYS_RENAMEAT2: unix.ENOSYS},
		"EPERM":         {unix.SYS_RENAMEAT2: unix.EPERM},
		"EOPNOTSUPP":    {unix.SYS_RENAMEAT2: unix.EOPNOTSUPP},
		"no links":      linkless,
		"links unknown": {unix.SYS_RENAMEAT2: unix.ENOSYS, unix.SYS_LINKAT: unix.ENOSYS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			entries := map[string]string{"temp": "ours", "file": "theirs", "dir": "", "broken": ">x"}
			p.make(entries)
			lacking(t, refused, func() {
				if err := exchange.Swap(p.dir, "temp", "file"); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("Swap: %v", err)
				}
				if err := exchange.RenameNew(p.dir, "temp", "new"); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("RenameNew: %v", err)
				}
				for _, taken := range []string{"file", "dir", "broken"} {
					if err := exchange.PublishNew(p.dir, "temp", taken); !errors.Is(err, fs.ErrExist) {
						t.Errorf("PublishNew onto %s: %v", taken, err)
					}
				}
				p.holds(entries)
				if err := exchange.PublishNew(p.dir, "missing", "new"); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("PublishNew of nothing: %v", err)
				}
				if err := exchange.PublishNew(p.dir, "temp", "new"); err != nil {
					t.Errorf("PublishNew: %v", err)
				}
			})
			after := maps.Clone(entries)
			delete(after, "temp")
			after["new"] = "ours"
			p.holds(after)
		})
	}
}

// Other errors are not taken for a lack: no second way is tried.
func TestRefusedIsNotLacking(t *testing.T) {
	t.Parallel()
	for _, refused := range []syscall.Errno{unix.EACCES, unix.EROFS, unix.ENOSPC, unix.EIO} {
		p := newPlace(t)
		p.make(map[string]string{"temp": "ours", "file": "theirs"})
		lacking(t, map[uint32]syscall.Errno{unix.SYS_RENAMEAT2: refused}, func() {
			for name, err := range map[string]error{
				"Swap": exchange.Swap(p.dir, "temp", "file"), "RenameNew": exchange.RenameNew(p.dir, "temp", "new"), "PublishNew": exchange.PublishNew(p.dir, "temp", "new"),
			} {
				if !errors.Is(err, refused) {
					t.Errorf("%s: %v, want %v", name, err, refused)
				}
			}
		})
		p.holds(map[string]string{"temp": "ours", "file": "theirs"})
	}
}
