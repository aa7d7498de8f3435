package search

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"

	"codehand/tools/search/index"
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

// trustedTypes are the file systems whose stamps tell of each change: those of this machine's own disks and memory, and
// what is laid over them. A network's file server has a clock of its own, and a FUSE program does as it likes.
var trustedTypes = map[int64]bool{
	unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true, unix.F2FS_SUPER_MAGIC: true,
	unix.TMPFS_MAGIC: true, unix.OVERLAYFS_SUPER_MAGIC: true,
	0x2FC12FC1: true, // zfs
	0xCA451A4E: true, // bcachefs
}

// trusts says whether the stamps of the directory's file system tell of each change.
func (d folder) trusts() bool {
	var st unix.Statfs_t
	//nolint:unconvert // int32 on some architectures
	return unix.Fstatfs(d.fd, &st) == nil && trustedTypes[int64(st.Type)]
}

// trusts says the same of an open file's.
func (r *regular) trusts() bool { return folder{fd: r.fd}.trusts() }

// again opens the directory once more, to be kept.
func (d folder) again() (folder, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	return folder{fd: fd}, err
}

// below opens a directory below d by its slash path.
func (d folder) below(rel string) (folder, error) {
	fd, err := openBeneath(d.fd, rel)
	return folder{fd: fd}, err
}

// Where the fields of a linux_dirent64 are.
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// direntBuffers hold what the kernel tells of a directory at once.
var direntBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// kinds are the types that a directory tells of its entries.
var kinds = map[byte]fs.FileMode{unix.DT_REG: 0, unix.DT_DIR: fs.ModeDir, unix.DT_LNK: fs.ModeSymlink,
	unix.DT_FIFO: fs.ModeNamedPipe, unix.DT_SOCK: fs.ModeSocket, unix.DT_CHR: fs.ModeDevice | fs.ModeCharDevice,
	unix.DT_BLK: fs.ModeDevice}

// entries reads the next names, at least one of them, or none at the end. The number wanted is no bound.
func (d folder) entries(int) ([]index.Listed, error) {
	buf := direntBuffers.Get().(*[64 << 10]byte)
	defer direntBuffers.Put(buf)
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(d.fd, buf[:]) })
		if err != nil || n <= 0 {
			return nil, err
		}
		if list := d.parse(buf[:n]); len(list) > 0 {
			return list, nil
		}
	}
}

// parse reads the entries in a buffer. Their names share one string.
func (d folder) parse(buf []byte) []index.Listed {
	var list []index.Listed
	var names []byte
	var ends []int
	for len(buf) > direntName {
		length := int(binary.NativeEndian.Uint16(buf[direntLength:]))
		if length <= direntName || length > len(buf) {
			break
		}
		name, _, _ := bytes.Cut(buf[direntName:length], []byte{0})
		kind, known := kinds[buf[direntType]]
		buf = buf[length:]
		if string(name) == "." || string(name) == ".." {
			continue
		}
		if !known {
			var st unix.Stat_t
			if unix.Fstatat(d.fd, string(name), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // gone
			}
			if kind, known = kinds[byte(st.Mode>>12&15)]; !known {
				kind = fs.ModeIrregular
			}
		}
		names = append(names, name...)
		ends = append(ends, len(names))
		list = append(list, index.Listed{Kind: kind})
	}
	all, from := string(names), 0
	for i, end := range ends {
		list[i].Name, from = all[from:end], end
	}
	return list
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
