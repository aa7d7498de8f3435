package look

import (
	"io/fs"
	"os"
	"syscall"
)

// stampOf returns the stamp of a directory.
func stampOf(info fs.FileInfo) (at stamp, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, false
	}
	return stamp{uint64(stat.Dev), stat.Ino, int64(stat.Ctim.Sec), int64(stat.Ctim.Nsec)}, true
}

// Mine says whether this user can change the mode of a file, so that what is shut now may be open a moment later.
func Mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}

const searchable = 1 // X_OK

// shut says why this user may not reach what is in a directory whose entries can be read.
func shut(dir string) error { return syscall.Access(dir, searchable) }

// named is a file that may have several names.
type named struct{ dev, ino uint64 }

// namesOf returns which file that is, and whether it has other names.
func namesOf(info fs.FileInfo) (file named, several bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return named{}, false
	}
	return named{uint64(stat.Dev), stat.Ino}, stat.Nlink > 1
}
