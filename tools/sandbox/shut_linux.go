package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Shut is a file or directory of this user's that this user could not reach, and is open for a moment.
type Shut struct {
	path     string
	dev, ino uint64
	mode     uint32 // as it was
}

// Unshut opens what this user owns and shut of path, which is below top or is it, and of the directories on the way
// there from top on: directories get the bits of need, a file at path that of reading. It follows no link. What it
// opened comes in its order; Again shuts it.
func Unshut(top, path string, need os.FileMode) (was []Shut) {
	rel, err := filepath.Rel(top, path)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	for at := top; ; {
		if s, ok := unshut(at, uint32(need)); ok {
			was = append(was, s)
		}
		if at == path {
			return was
		}
		var part string
		part, rel, _ = strings.Cut(rel, "/")
		at = filepath.Join(at, part)
	}
}

func unshut(path string, need uint32) (was Shut, ok bool) {
	ok = onFile(path, func(file string, info *unix.Stat_t) bool {
		switch info.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
		case unix.S_IFREG:
			need &= 0o400
		default:
			return false
		}
		was = Shut{path, info.Dev, info.Ino, info.Mode &^ unix.S_IFMT}
		return info.Uid == uint32(os.Geteuid()) && was.mode&need != need && unix.Chmod(file, was.mode|need) == nil
	})
	return was, ok
}

// Again shuts it, if it is still there.
func (s Shut) Again() {
	onFile(s.path, func(file string, info *unix.Stat_t) bool {
		return info.Dev == s.dev && info.Ino == s.ino && unix.Chmod(file, s.mode) == nil
	})
}

// onFile calls do with a name that stands for a file, whatever is at its path by then.
func onFile(path string, do func(file string, info *unix.Stat_t) bool) bool {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }() // it holds no data
	var info unix.Stat_t
	return unix.Fstat(fd, &info) == nil && do("/proc/self/fd/"+strconv.Itoa(fd), &info)
}
