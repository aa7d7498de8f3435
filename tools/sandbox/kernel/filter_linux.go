package kernel

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// forbidden are system calls that no command needs and that reach past the other walls: other processes' memory, mounts
// and namespaces, keys, the kernel's own programs. arch_linux_*.go adds those that only some processors have.
var forbidden = []uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_FANOTIFY_INIT,
	unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
}

// Offsets in what a filter looks at (struct seccomp_data). Arguments have 64 bits; the machines that we know store the
// lower half first.
const (
	numberAt   = 0
	machineAt  = 4
	argumentAt = 16
)

// Answers of a filter.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	noRoom = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	kill   = unix.SECCOMP_RET_KILL_PROCESS
)

// A program of the filter is a list of blocks. Each block begins with the number of the system call loaded, and ends
// the same way unless it answers. So no jump is longer than its block, and none comes near the 255 that are possible.
type program []unix.SockFilter

func (p *program) add(code uint16, k uint32, yes, no uint8) {
	*p = append(*p, unix.SockFilter{Code: code, Jt: yes, Jf: no, K: k})
}

func (p *program) load(at uint32)     { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (p *program) answer(with uint32) { p.add(unix.BPF_RET|unix.BPF_K, with, 0, 0) }

// ifNot skips the next n instructions unless what is loaded is k.
func (p *program) ifNot(k uint32, n int) { p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k, 0, uint8(n)) }

// on answers one system call.
func (p *program) on(number, with uint32) {
	p.ifNot(number, 1)
	p.answer(with)
}

// call adds a block for one system call that looks at its arguments. The block may end without an answer.
func (p *program) call(number uint32, block program) {
	block.load(numberAt)
	p.ifNot(number, len(block))
	*p = append(*p, block...)
}

func argument(i uint32) uint32 { return argumentAt + 8*i }

// filter returns the filter of system calls for a command.
func filter(s *Spec) program {
	var p program
	p.load(machineAt)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, machine, 1, 0)
	p.answer(kill)
	p.load(numberAt)
	if foreign != 0 { // numbers from here on are another way to call the same
		p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, foreign, 0, 1)
		p.answer(kill)
	}
	for _, number := range forbidden {
		p.on(number, refuse)
	}
	for _, number := range forbiddenHere {
		p.on(number, refuse)
	}
	// Its flags are in memory, which a filter cannot read. The C library uses clone then.
	p.on(unix.SYS_CLONE3, absent)
	var clone program
	clone.load(argument(0))
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET | unix.CLONE_NEWTIME
	clone.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, namespaces&^0xff, 0, 1)
	clone.answer(refuse)
	p.call(unix.SYS_CLONE, clone)

	var ioctl program
	ioctl.load(argument(1))
	ioctl.on(unix.TIOCSTI, refuse)
	ioctl.on(unix.TIOCLINUX, refuse)
	ioctl.on(unix.TIOCSETD, refuse) // line disciplines are drivers that no command needs
	p.call(unix.SYS_IOCTL, ioctl)

	for _, c := range slices.Concat(modeCalls, modeCallsHere) {
		p.call(c.number, c.refusal())
	}
	p.on(unix.SYS_OPENAT2, absent) // its mode is in memory. Programs open as on older kernels then.

	if s.Level < LevelFull { // there it has process numbers of its own
		p = append(p, others()...)
	}
	p.call(unix.SYS_SOCKET, sockets(s))
	p.call(unix.SYS_SOCKETPAIR, pairs())
	p.answer(allow)
	return p
}

// A modeCall is a system call that gives a file a mode.
type modeCall struct {
	number uint32
	mode   uint32 // the argument with the mode
	flags  uint32 // the argument with the flags of open, without which it makes no file; 0: it has none
}

// modeCalls are those that all processors have. arch_linux_*.go adds the others.
var modeCalls = []modeCall{
	{unix.SYS_FCHMOD, 1, 0}, {unix.SYS_FCHMODAT, 2, 0}, {unix.SYS_FCHMODAT2, 2, 0}, {unix.SYS_MKNODAT, 2, 0},
	{unix.SYS_OPENAT, 3, 2},
}

// refusal refuses the set-user-ID bit. A program that has it, and stays in a workspace, gives each user of the machine
// who runs it the rights of the user whose command left it. The kernel takes that bit from new directories.
func (c modeCall) refusal() program {
	var p, refused program
	refused.load(argument(c.mode))
	refused.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, unix.S_ISUID, 0, 1)
	refused.answer(refuse)
	if c.flags != 0 { // else the mode means nothing
		const makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
		p.load(argument(c.flags))
		p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, makes, 0, uint8(len(refused)))
	}
	return append(p, refused...)
}

// prSchedCore and ioprioUser are PR_SCHED_CORE and IOPRIO_WHO_USER.
const (
	prSchedCore = 62
	ioprioUser  = 3
)

// others answers what changes limits, processors, priorities or memory of a process by its number: only of the caller,
// which is 0 there. A processor limit of a second would end any process of the same user, also the server. Signals are
// Landlock's.
func others() program {
	var p program
	for _, c := range []struct {
		number uint32
		at     uint32 // the argument with the number of the process
		user   uint32 // a first argument that makes it the number of a user; 0: none does
	}{
		{unix.SYS_PRLIMIT64, 0, 0}, {unix.SYS_SCHED_SETAFFINITY, 0, 0}, {unix.SYS_SCHED_SETSCHEDULER, 0, 0},
		{unix.SYS_SCHED_SETPARAM, 0, 0}, {unix.SYS_SCHED_SETATTR, 0, 0}, {unix.SYS_MOVE_PAGES, 0, 0},
		{unix.SYS_MIGRATE_PAGES, 0, 0}, {unix.SYS_SETPRIORITY, 1, unix.PRIO_USER}, {unix.SYS_IOPRIO_SET, 1, ioprioUser},
	} {
		var b program
		if c.user != 0 {
			b.load(argument(0))
			b.on(c.user, refuse)
		}
		b.load(argument(c.at))
		b.on(0, allow)
		b.answer(refuse)
		p.call(c.number, b)
	}
	var core program
	core.load(argument(0))
	core.on(prSchedCore, refuse)
	p.call(unix.SYS_PRCTL, core)
	return p
}

// sockets answers socket: only families and protocols that are needed. Until Landlock knows paths of sockets, nothing
// else keeps a command from connecting to those of others that it can see. So without a network a command has no
// sockets but pairs, unless it has files of its own, at LevelFull, where it sees few others.
func sockets(s *Spec) program {
	var p program
	p.load(argument(0))
	if s.Profile.Network == NetworkOn || s.Level >= LevelFull && s.Profile.Sockets {
		p.on(unix.AF_UNIX, allow)
	}
	if s.Level < LevelFull && s.Profile.Network != NetworkOn {
		p.answer(noRoom)
		return p
	}
	var route program // interfaces and routes, which the C library asks for
	route.load(argument(2))
	route.on(unix.NETLINK_ROUTE, allow)
	route.answer(refuse)
	p.ifNot(unix.AF_NETLINK, len(route))
	p = append(p, route...)

	// TCP and UDP. Others, as MPTCP, are not covered by Landlock, and raw sockets see what others send.
	var inet program
	inet.load(argument(1))
	inet.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0) // without flags
	var stream, datagram program
	stream.load(argument(2))
	stream.on(0, allow)
	stream.on(unix.IPPROTO_TCP, allow)
	stream.answer(refuse)
	datagram.load(argument(2))
	datagram.on(0, allow)
	datagram.on(unix.IPPROTO_UDP, allow)
	datagram.answer(refuse)
	inet.ifNot(unix.SOCK_STREAM, len(stream))
	inet = append(inet, stream...)
	inet.ifNot(unix.SOCK_DGRAM, len(datagram))
	inet = append(inet, datagram...)
	inet.answer(refuse)
	p.load(argument(0))
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		p.ifNot(family, len(inet))
		p = append(p, inet...)
	}
	p.answer(noRoom)
	return p
}

// pairs answers socketpair: only those of AF_UNIX.
func pairs() program {
	var p program
	p.load(argument(0))
	p.on(unix.AF_UNIX, allow)
	p.answer(noRoom)
	return p
}

// loadFilter puts a filter on this thread.
func loadFilter(p program) error {
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if no != 0 {
		return no
	}
	return nil
}
