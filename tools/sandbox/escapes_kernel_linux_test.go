package sandbox

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/probe"
)

const (
	minusOne = ^uintptr(0)
	upper    = 1 << 32 // a bit that the kernel ignores where an argument has 32
)

// kernelEscapes make system calls that no command needs. Their arguments are wrong wherever a right one would have an
// effect, so a call that is let through fails in another way than one that is refused.
func kernelEscapes() []escape {
	var list []escape
	add := func(root bool, name string, try func() error) {
		list = append(list, escape{
			Attempt: probe.Attempt{Name: name, Level: 2, Gap: probe.KernelCalls, Try: func(*probe.Scene) error { return try() }}, root: root,
		})
	}
	wrong := func(root bool, name string, number uintptr, args ...uintptr) {
		add(root, name, func() error { return letsThrough(number, args...) })
	}
	const all, rootOnly = false, true

	wrong(all, "io_uring_enter", unix.SYS_IO_URING_ENTER, minusOne)
	wrong(all, "io_uring_register", unix.SYS_IO_URING_REGISTER, minusOne)
	wrong(all, "ptrace a child", unix.SYS_PTRACE, unix.PTRACE_CONT, 1<<30)
	wrong(all, "perf_event_open", unix.SYS_PERF_EVENT_OPEN)
	wrong(all, "userfaultfd", unix.SYS_USERFAULTFD, 1) // of its own memory, which needs no right
	wrong(rootOnly, "bpf", unix.SYS_BPF, 9999)
	wrong(all, "keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 0)
	add(all, "add_key", func() error {
		_, err := unix.AddKey("user", "codehand-escape", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	})
	add(all, "request_key", func() error {
		_, err := unix.RequestKey("user", "codehand-none", "", 0)
		return unlessAs(err, unix.ENOKEY, unix.ENOENT) // ENOENT: the kernel has no helper to ask
	})
	add(all, "bind a mount", func() error { return unlessAs(unix.Mount("/none", "/none", "", unix.MS_BIND, ""), unix.ENOENT) })
	add(all, "move a mount", func() error { return unlessAs(unix.Mount("/none", "/none", "", unix.MS_MOVE, ""), unix.ENOENT) })
	add(all, "remount", func() error {
		return unlessAs(unix.Mount("", "/none", "", unix.MS_REMOUNT|unix.MS_BIND, ""), unix.ENOENT)
	})
	add(all, "umount", func() error { return unlessAs(unix.Unmount("/none", unix.MNT_DETACH), unix.ENOENT) })
	add(all, "open_tree", func() error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	wrong(rootOnly, "move_mount", unix.SYS_MOVE_MOUNT, minusOne, 0, minusOne)
	wrong(rootOnly, "fsopen", unix.SYS_FSOPEN)
	wrong(rootOnly, "fspick", unix.SYS_FSPICK, minusOne)
	wrong(all, "fsconfig", unix.SYS_FSCONFIG, minusOne, 0)
	wrong(rootOnly, "fsmount", unix.SYS_FSMOUNT, minusOne)
	wrong(all, "mount_setattr", unix.SYS_MOUNT_SETATTR, minusOne)
	wrong(rootOnly, "pivot_root", unix.SYS_PIVOT_ROOT)
	add(rootOnly, "chroot", func() error { return unix.Chroot("/") })
	// More than one thread may not make a user namespace: the kernel says so before it looks further.
	wrong(all, "unshare a user namespace", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	wrong(rootOnly, "unshare a namespace", unix.SYS_UNSHARE, unix.CLONE_NEWUTS)
	wrong(all, "setns", unix.SYS_SETNS, minusOne)
	for name, flag := range map[string]uintptr{
		"mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC,
		"uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP,
	} {
		add(all, "make a "+name+" namespace", func() error { return cloned(unix.CLONE_NEWUSER | flag) })
		add(rootOnly, "make only a "+name+" namespace", func() error { return cloned(flag) })
	}
	wrong(all, "clone3", unix.SYS_CLONE3)
	wrong(rootOnly, "kexec_load", unix.SYS_KEXEC_LOAD, 0, 1<<20, 0, 0xffffff)
	wrong(rootOnly, "init_module", unix.SYS_INIT_MODULE)
	wrong(rootOnly, "finit_module", unix.SYS_FINIT_MODULE, minusOne, 0, 0xffff)
	wrong(rootOnly, "delete_module", unix.SYS_DELETE_MODULE)
	wrong(all, "name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, minusOne)
	wrong(rootOnly, "open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, minusOne)
	wrong(rootOnly, "swapon", unix.SYS_SWAPON)
	wrong(rootOnly, "swapoff", unix.SYS_SWAPOFF)
	wrong(rootOnly, "acct", unix.SYS_ACCT, 1)
	wrong(all, "quotactl", unix.SYS_QUOTACTL, 0xffff_ffff, 1)
	wrong(rootOnly, "reboot", unix.SYS_REBOOT)
	wrong(rootOnly, "syslog", unix.SYS_SYSLOG, 99)
	wrong(all, "settimeofday", unix.SYS_SETTIMEOFDAY, 1)
	wrong(all, "clock_settime", unix.SYS_CLOCK_SETTIME, 9999)
	wrong(all, "adjtimex", unix.SYS_ADJTIMEX)
	wrong(rootOnly, "sethostname", unix.SYS_SETHOSTNAME, 0, 9999)
	wrong(rootOnly, "fanotify_init", unix.SYS_FANOTIFY_INIT, 0xffff_ffff)
	wrong(rootOnly, "vhangup without a terminal", unix.SYS_VHANGUP)
	// A file is no terminal, which the kernel says of each of these.
	add(all, "TIOCSTI", func() error { return unlessAs(call(unix.SYS_IOCTL, 0, unix.TIOCSTI), unix.ENOTTY) })
	add(all, "TIOCSTI with upper bits", func() error { return unlessAs(call(unix.SYS_IOCTL, 0, unix.TIOCSTI|upper), unix.ENOTTY) })
	add(all, "TIOCLINUX", func() error { return unlessAs(call(unix.SYS_IOCTL, 0, unix.TIOCLINUX), unix.ENOTTY) })
	add(all, "TIOCSETD", func() error { return unlessAs(call(unix.SYS_IOCTL, 0, unix.TIOCSETD), unix.ENOTTY) })
	add(all, "TIOCLINUX with upper bits", func() error { return unlessAs(call(unix.SYS_IOCTL, 0, unix.TIOCLINUX|upper), unix.ENOTTY) })
	// Nothing is there whose mode could be changed. Without O_CREAT a mode means nothing.
	const setuid = unix.S_ISUID | 0o755
	wrong(all, "give a set-user-ID bit by fchmod", unix.SYS_FCHMOD, minusOne, setuid)
	wrong(all, "give a set-user-ID bit, with upper bits", unix.SYS_FCHMOD, minusOne, setuid|upper)
	wrong(all, "give a set-user-ID bit by fchmodat", unix.SYS_FCHMODAT, minusOne, 0, setuid)
	wrong(all, "give a set-user-ID bit by fchmodat2", unix.SYS_FCHMODAT2, minusOne, 0, setuid)
	wrong(all, "make a set-user-ID file by mknodat", unix.SYS_MKNODAT, minusOne, 0, unix.S_IFREG|setuid)
	wrong(all, "make a set-user-ID file by openat", unix.SYS_OPENAT, minusOne, 0, unix.O_CREAT|unix.O_WRONLY, setuid)
	wrong(all, "make a set-user-ID file without a name", unix.SYS_OPENAT, minusOne, 0, unix.O_TMPFILE|unix.O_RDWR, setuid)
	wrong(all, "openat2", unix.SYS_OPENAT2, minusOne)
	list = append(list, otherCalls()...)
	// Hanging up a terminal has an effect where there is one.
	for i := range list {
		if list[i].Name == "vhangup without a terminal" {
			list[i].free = "it is tried only where it is forbidden"
			list[i].Try = func(s *probe.Scene) error {
				if n, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || n != 2 {
					return probe.ErrAbsent
				}
				return letsThrough(unix.SYS_VHANGUP)
			}
		}
	}
	return list
}

func cloned(flags uintptr) error {
	_, err := syscall.ForkExec("/proc/self/none", []string{"none"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	return unlessAs(err, unix.ENOENT)
}

// machineEscapes reach the kernel's settings, devices, limits and what processes share besides files.
func machineEscapes() []escape {
	var list []escape
	add := func(root bool, level int, gap, name string, try func(s *probe.Scene) error) {
		list = append(list, escape{Attempt: probe.Attempt{Name: name, Level: level, Gap: gap, Try: try}, root: root})
	}
	// Opening changes nothing.
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
		"/proc/sys/kernel/hostname", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger", "/proc/1/oom_score_adj",
		"/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state",
	} {
		add(true, 2, probe.WritesOutside, "open "+path+" for writing", func(*probe.Scene) error {
			return absentIf(opens(path), unix.ENOENT)
		})
	}
	add(true, 2, probe.WritesOutside, "make a group of processes", makeCgroup)
	add(true, 2, probe.ReadsOutside, "read a disk", readDisk)
	for _, name := range []string{"/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/vhost-vsock", "/dev/loop-control"} {
		add(true, 2, probe.ReadsOutside, "open "+name, func(*probe.Scene) error {
			if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) && os.Getppid() != 1 {
				return probe.ErrAbsent
			}
			fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				return absentIf(err, unix.ENODEV, unix.ENXIO)
			}
			return unix.Close(fd)
		})
	}
	for _, write := range []bool{false, true} {
		name := "make a device in the root"
		if !write {
			name = "make a device outside"
		}
		add(true, 2, probe.WritesOutside, name, func(s *probe.Scene) error {
			dir := s.Seen
			if write {
				dir = s.Root
			}
			const nullDevice = 1<<8 | 3
			return unix.Mknod(dir+"/device", unix.S_IFCHR|0o600, nullDevice)
		})
	}
	add(true, 3, probe.Privileges, "raise a hard limit", func(*probe.Scene) error {
		var l unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			return err
		}
		return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: l.Cur, Max: l.Max + 1})
	})
	list[len(list)-1].free = "root of a virtual machine may not have the capability"
	add(true, 3, probe.Privileges, "become another user", func(*probe.Scene) error {
		return call(unix.SYS_SETRESUID, minusOne, 12345, minusOne) // this thread only, which ends
	})
	add(true, 3, probe.Privileges, "run before others", func(*probe.Scene) error {
		return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -1)
	})
	add(true, 3, probe.Privileges, "be spared when memory runs out", func(*probe.Scene) error {
		return os.WriteFile("/proc/self/oom_score_adj", []byte("-1"), 0)
	})
	list[len(list)-1].free = "root of a virtual machine may not have the capability"
	add(true, 3, probe.Privileges, "run a setuid program", runSetuid)
	add(false, 3, probe.IPC, "attach shared memory of System V", func(s *probe.Scene) error {
		id, err := unix.SysvShmGet(queueKey(s), 0, 0)
		if err != nil {
			return err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		return unix.SysvShmDetach(b)
	})
	add(false, 3, probe.IPC, "open a message queue of System V", func(s *probe.Scene) error {
		return call(unix.SYS_MSGGET, uintptr(queueKey(s)), 0)
	})
	add(false, 3, probe.IPC, "open semaphores of System V", func(s *probe.Scene) error {
		return call(unix.SYS_SEMGET, uintptr(queueKey(s)), 0, 0)
	})
	add(false, 3, probe.IPC, "open a message queue by its name", func(s *probe.Scene) error { return openQueue(s, unix.O_RDWR) })
	return list
}

func makeCgroup(*probe.Scene) error {
	last := probe.ErrAbsent
	for _, place := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"} {
		path := place + "/codehand-escape-" + strconv.Itoa(os.Getpid())
		if last = os.Mkdir(path, 0o700); last == nil {
			return os.Remove(path)
		}
	}
	return last
}

func readDisk(*probe.Scene) error {
	disks, _ := filepath.Glob("/sys/class/block/*")
	if len(disks) == 0 {
		disks = []string{"vda", "sda", "nvme0n1"} // it cannot be looked up here
	}
	last := probe.ErrAbsent
	for _, disk := range disks {
		fd, err := unix.Open("/dev/"+filepath.Base(disk), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			return unix.Close(fd)
		}
		if !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENOMEDIUM) {
			last = err
		}
	}
	return last
}

// runSetuid runs a setuid program of another user, and tells whether it ran as that user.
func runSetuid(s *probe.Scene) error {
	pid, err := syscall.ForkExec(s.Seen+"/setuid", []string{"setuid", "60"}, &syscall.ProcAttr{Env: []string{}})
	if err != nil {
		return err
	}
	defer func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return err
	}
	if own := "\nUid:\t" + strconv.Itoa(os.Getuid()) + "\t" + strconv.Itoa(os.Getuid()) + "\t"; !contains(text, own) {
		return nil
	}
	return errors.New("it has not become another user")
}

func contains(text []byte, part string) bool {
	for i := range text {
		if len(text)-i >= len(part) && string(text[i:i+len(part)]) == part {
			return true
		}
	}
	return false
}

// queueKey names what processes of this scene could share.
func queueKey(s *probe.Scene) int { return math.MaxInt32 - s.Victim }

// openQueue opens the queue of messages that is named by the scene.
func openQueue(s *probe.Scene, flags int) error {
	name, err := unix.BytePtrFromString("codehand-" + s.Token)
	if err != nil {
		return err
	}
	fd, _, no := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0, 0)
	if no != 0 {
		return no
	}
	return unix.Close(int(fd))
}

// stageQueues makes what machineEscapes look for.
func stageQueues(t *testing.T, s *probe.Scene) {
	t.Helper()
	key := queueKey(s)
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o600)
	must(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	queue, _, no := unix.Syscall(unix.SYS_MSGGET, uintptr(key), unix.IPC_CREAT|0o600, 0)
	if no != 0 {
		t.Fatal(no)
	}
	t.Cleanup(func() { _ = call(unix.SYS_MSGCTL, queue, unix.IPC_RMID, 0) })
	semaphores, _, no := unix.Syscall(unix.SYS_SEMGET, uintptr(key), 1, unix.IPC_CREAT|0o600)
	if no != 0 {
		t.Fatal(no)
	}
	t.Cleanup(func() { _ = call(unix.SYS_SEMCTL, semaphores, 0, unix.IPC_RMID) })
	must(t, openQueue(s, unix.O_RDWR|unix.O_CREAT))
	t.Cleanup(func() {
		name, _ := unix.BytePtrFromString("codehand-" + s.Token)
		_ = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)))
		runtime.KeepAlive(name)
	})
}
