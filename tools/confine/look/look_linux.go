package look

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// StampOf returns the stamp of a directory or file; not known: this system has none that its owner cannot set.
func StampOf(info fs.FileInfo) (at Stamp, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Stamp{}, false
	}
	return Stamp{stat.Dev, stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec}, true
}

// Mine says whether this user can change the mode of a file, so that what is shut now may be open a moment later.
func Mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}

const searchable = 1 // X_OK

// Shut says whether this user owns a directory and may not look into it at the moment.
func Shut(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && Mine(info) && syscall.Access(dir, searchable|readable) != nil
}

const readable = 4 // R_OK

// shut says why this user may not reach what is in a directory whose entries can be read.
func shut(dir string) error { return syscall.Access(dir, searchable) }

// A File is one on the disk, whatever its names.
type File struct{ Device, Inode uint64 }

// FileOf returns which file that is, and whether it has other names, which only a regular file has.
func FileOf(info fs.FileInfo) (file File, several bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return File{}, false
	}
	return File{stat.Dev, stat.Ino}, stat.Nlink > 1
}

// Born is when the file at a path was made, or the link there: the kernel uses the number of a removed file again.
// Zero: the file system does not say.
func Born(path string) (nanoseconds int64) {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_BTIME, &s)
	if err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return s.Btime.Sec*1e9 + int64(s.Btime.Nsec)
}
