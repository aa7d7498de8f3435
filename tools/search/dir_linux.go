package search

import (
	"errors"

	"golang.org/x/sys/unix"
)

// maxOpenPath is the longest path that one system call takes, with room to spare, in bytes.
const maxOpenPath = 4000

// openTries is how often a path is tried again when something moved while the kernel resolved it.
const openTries = 8

// systemTypes are the file systems that a walk does not enter: what looks like a file there is an interface of the
// kernel.
var systemTypes = map[int64]bool{
	unix.PROC_SUPER_MAGIC: true, unix.SYSFS_MAGIC: true, unix.DEVPTS_SUPER_MAGIC: true, unix.CGROUP_SUPER_MAGIC: true,
	unix.CGROUP2_SUPER_MAGIC: true, unix.DEBUGFS_MAGIC: true, unix.TRACEFS_MAGIC: true, unix.SECURITYFS_MAGIC: true,
	unix.BPF_FS_MAGIC: true, unix.PSTOREFS_MAGIC: true, unix.EFIVARFS_MAGIC: true, unix.BINFMTFS_MAGIC: true,
	unix.AUTOFS_SUPER_MAGIC: true,
	0x62656570:              true, // configfs
	0x19800202:              true, // mqueue
}

// openBeneath opens a directory below another: no link on the way is followed, and no ".." leaves it.
func openBeneath(at int, rel string) (int, error) {
	if len(rel) > maxOpenPath {
		return checkSystem(openByComponent(at, rel))
	}
	how := unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	for range openTries {
		fd, err := retry(func() (int, error) { return unix.Openat2(at, rel, &how) })
		switch {
		case errors.Is(err, unix.EAGAIN):
		case errors.Is(err, unix.EXDEV) && how.Resolve&unix.RESOLVE_NO_XDEV != 0:
			how.Resolve &^= unix.RESOLVE_NO_XDEV
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.E2BIG), errors.Is(err, unix.EPERM):
			// An old kernel, or a container's filter. It says so each time, which costs less than a variable to
			// remember it.
			return checkSystem(openByComponent(at, rel))
		case err == nil && how.Resolve&unix.RESOLVE_NO_XDEV == 0:
			return checkSystem(fd, nil)
		default:
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

// checkSystem closes a directory of a system file system again.
func checkSystem(fd int, err error) (int, error) {
	if err != nil {
		return -1, err
	}
	var st unix.Statfs_t
	//nolint:unconvert // int32 on some architectures
	if err := unix.Fstatfs(fd, &st); err == nil && systemTypes[int64(st.Type)] {
		_ = unix.Close(fd)
		return -1, errSystem
	}
	return fd, nil
}
