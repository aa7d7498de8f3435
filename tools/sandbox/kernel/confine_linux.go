package kernel

import (
	"cmp"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confine takes from this thread, and so from the command, all that the profile does not give. It is the last step:
// after it, most of the others are forbidden. tty is the command's terminal; 0: it has none.
func confine(s *Spec, tty int) error {
	if machine == 0 {
		return failed(unix.ENOSYS, "know the system calls of "+runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return failed(err, "forbid new privileges")
	}
	if err := landlock(s, tty); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return failed(loadFilter(filter(s)), "load the filter of system calls")
}

// dropCapabilities empties all five sets. The bounding set needs a capability; without it no program can gain one
// either, since new privileges are forbidden.
func dropCapabilities() error {
	for c := uintptr(0); ; c++ {
		in, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err != nil {
			break // there are no more
		}
		if in == 1 {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && c == 0 {
				break
			}
		}
	}
	// Kernels without ambient capabilities have none to drop.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	var none [2]unix.CapUserData
	err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
	return failed(err, "drop capabilities")
}

// What Landlock calls reading and writing, by the version of its interface that brought it.
const (
	reading = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writing = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	// ofFiles is what can be allowed of a file.
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
)

// A ruleset is what Landlock will allow.
type ruleset struct {
	fd      int
	handled uint64
}

// landlock forbids this thread all files but those of the profile, and signals and abstract sockets outside. Versions
// below 3 cannot keep a command from truncating files: they are an error.
func landlock(s *Spec, tty int) error {
	abi, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if no != 0 {
		return failed(no, "use Landlock")
	}
	if abi < 3 {
		return failed(unix.ENOSYS, "use Landlock of version 3")
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: reading | writing}
	if abi < 5 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi < 9 {
		attr.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	size := unsafe.Offsetof(attr.Handled_access_net)
	if abi >= 4 {
		size = unsafe.Offsetof(attr.Scoped)
		if s.Level < LevelFull && s.Profile.Network != NetworkOn {
			attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if abi >= 6 {
		size = unsafe.Offsetof(attr.Quiet_access_fs)
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if no != 0 {
		return failed(no, "make a ruleset of Landlock")
	}
	r := ruleset{int(fd), attr.Handled_access_fs}
	defer func() { _ = unix.Close(r.fd) }()
	if err := r.fill(s, tty); err != nil {
		return err
	}
	if _, _, no := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); no != 0 {
		return failed(no, "enforce Landlock")
	}
	return nil
}

func (r ruleset) fill(s *Spec, tty int) error {
	p := s.Profile
	const links, noLinks = 0, unix.RESOLVE_NO_SYMLINKS
	own := slices.Clip(p.Writable)
	if p.Temp != "" {
		own = append(own, p.Temp)
	}
	var device, private []string
	for _, name := range devices {
		device = append(device, "/dev/"+name)
	}
	if s.Level >= LevelFull {
		private = append(private, "/dev/shm", "/dev/pts")
		private = append(private, temporaries...)
	}
	for _, rule := range []struct {
		paths  []string
		access uint64
		follow uint64
	}{
		{append(slices.Clip(system), "/proc"), reading, links},
		{p.Readable, reading, noLinks},
		{own, reading | writing, noLinks},
		{private, reading | writing, noLinks},
		{device, ofFiles &^ unix.LANDLOCK_ACCESS_FS_EXECUTE, noLinks},
	} {
		for _, path := range rule.paths {
			if err := r.allow(path, rule.access, rule.follow); err != nil {
				return err
			}
		}
	}
	// Its own streams by their names, as /dev/stdout. Pipes and sockets need no rule.
	for fd := range 3 {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		access := uint64(ofFiles &^ unix.LANDLOCK_ACCESS_FS_EXECUTE)
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
			access = unix.LANDLOCK_ACCESS_FS_READ_FILE // it would be written where its name is opened anew
		}
		if err := r.allowOpen(fd, access); err != nil {
			return failed(err, "allow the streams")
		}
	}
	if tty != 0 { // by its own name, too, as ttyname says it
		return failed(r.allowOpen(tty, ofFiles&^unix.LANDLOCK_ACCESS_FS_EXECUTE), "allow the terminal")
	}
	return nil
}

// allow adds a rule for a path; what is missing needs none.
func (r ruleset) allow(path string, access, follow uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: follow})
	if errors.Is(err, unix.ENOSYS) { // a codehand that runs in a command, see filter
		fd, err = openAsBefore(path, follow)
	}
	if missing(err) {
		return nil
	}
	if err != nil {
		return failed(err, "open %s", path)
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return failed(err, "look at %s", path)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles
	}
	return failed(r.allowOpen(fd, access), "allow %s", path)
}

// openAsBefore opens a path without openat2. A link on the way shows in the name of what was opened.
func openAsBefore(path string, follow uint64) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil || follow&unix.RESOLVE_NO_SYMLINKS == 0 {
		return fd, err
	}
	if real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil || real != path {
		_ = unix.Close(fd)
		return -1, cmp.Or[error](err, unix.ELOOP)
	}
	return fd, nil
}

func (r ruleset) allowOpen(fd int, access uint64) error {
	// The kernel's struct is packed, and Go's is longer; it reads no more than it knows.
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & r.handled, Parent_fd: int32(fd)}
	_, _, no := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if no != 0 {
		return no
	}
	return nil
}
