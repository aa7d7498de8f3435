package workspace

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// systemKinds are the file systems whose files are doors of the kernel: opening one, reading it or writing it does
// something, and its size and content are made up.
var systemKinds = [...]int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
	unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC,
	unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC,
	0x62656570, // configfs
}

// onSystem says whether path is on such a file system.
func onSystem(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return false // who opens it is told why
	}
	info, err := os.Stat(path)
	return err == nil && systemKind(&st, info)
}

// systemBelow says whether name in dir, which info describes, was mounted from such a file system below a root on the
// device of base.
func systemBelow(dir *os.Root, name string, info, base os.FileInfo) bool {
	if device(info) == device(base) {
		return false
	}
	// it opens no device, and waits for no FIFO
	f, err := dir.OpenFile(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false // likewise
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	system := false
	_ = raw.Control(func(fd uintptr) { // it fails for closed files only
		var st unix.Statfs_t
		system = unix.Fstatfs(int(fd), &st) == nil && systemKind(&st, info)
	})
	return system
}

// systemKind says whether a file system is of that kind. The one of devices calls itself tmpfs, so it is known by its
// number, which is that of /dev.
func systemKind(st *unix.Statfs_t, info os.FileInfo) bool {
	kind := int64(uint32(st.Type)) // the numbers have 32 bits, with a sign on some architectures
	if kind != unix.TMPFS_MAGIC {
		return slices.Contains(systemKinds[:], kind)
	}
	dev, errDev := os.Stat("/dev")
	top, errTop := os.Stat("/") // of a small system everything may be one tmpfs
	return errDev == nil && errTop == nil && device(dev) == device(info) && device(top) != device(info)
}

// device is the number of the file system that info is about; 0: unknown.
func device(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) //nolint:unconvert // it differs between architectures
	}
	return 0
}
