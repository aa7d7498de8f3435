package workspace

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// handleOf opens dir once more, because os.Root does not tell its descriptor. nil: it cannot be had.
func handleOf(dir *os.Root) *os.File {
	f, err := dir.Open(".")
	if err != nil {
		return nil // without it every path is walked
	}
	return f
}

// open opens the directory way below dir; nil: it cannot, and a walk says why. No link is followed, so that the path of
// what was opened is the one that was asked for.
func (s *shortcut) open(dir *os.File, way string) *os.Root {
	if dir == nil {
		return nil
	}
	raw, err := dir.SyscallConn()
	if err != nil {
		return nil
	}
	var sub *os.Root
	_ = raw.Control(func(at uintptr) { // an error is that of a closed file: the walk finds it, too
		fd := s.resolve(int(at), way)
		if fd < 0 {
			return
		}
		defer unix.Close(fd) //nolint:errcheck // it was opened to name a directory, and holds nothing
		sub = s.root(fd)
	})
	return sub
}

// resolve asks the kernel for the directory; -1: there is none, or a link on the way.
func (s *shortcut) resolve(at int, way string) int {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_SYMLINKS,
	}
	for range maxAgain {
		fd, err := unix.Openat2(at, way, &how)
		switch {
		case err == nil:
			return fd
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.E2BIG):
			s.off.Store(true) // an old kernel, or a container's filter
		}
		return -1
	}
	return -1
}

// root makes a handle of the descriptor of a directory: os.Root has no door for one but its name in /proc. What stands
// there is compared, since a container may have no /proc, or something else in its place.
func (s *shortcut) root(fd int) *os.Root {
	dir, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(fd))
	if errors.Is(err, os.ErrNotExist) {
		s.off.Store(true)
	}
	if err != nil {
		return nil
	}
	var want unix.Stat_t
	if info, err := dir.Stat("."); err == nil && unix.Fstat(fd, &want) == nil {
		if got, ok := info.Sys().(*syscall.Stat_t); ok && got.Dev == want.Dev && got.Ino == want.Ino {
			return dir
		}
	}
	s.off.Store(true)
	_ = dir.Close() // never used
	return nil
}
