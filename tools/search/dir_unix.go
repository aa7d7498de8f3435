//go:build unix

package search

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codehand/tools/search/index"
)

// placeFlags open what a query names without waiting for the other end of a FIFO.
const placeFlags = os.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY

// errSystem says that a directory belongs to a file system that holds no user's files.
var errSystem = errors.New("system file system")

// A folder is an open directory of a walk. Everything below the walk's start is reached from the start's own handle,
// one component at a time and never through a link.
type folder struct {
	fd int
	f  *os.File // that fd belongs to; nil: to none
}

// startFolder makes a folder of an open directory.
func startFolder(_ Place, f *os.File) (folder, error) { return folder{int(f.Fd()), f}, nil }

// openByComponent opens a directory one component after the other.
func openByComponent(at int, rel string) (int, error) {
	fd := at
	for name := range strings.SplitSeq(rel, "/") {
		next, err := retry(func() (int, error) {
			return unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
		if fd != at {
			_ = unix.Close(fd) // only opened on the way
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (d folder) close() { // nothing was written
	if d.f != nil {
		_ = d.f.Close()
		return
	}
	_ = unix.Close(d.fd)
}

// stamp is that of the directory itself.
func (d folder) stamp() (index.Stamp, error) {
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(d.fd, &st) }); err != nil {
		return index.Stamp{}, err
	}
	return statOf(&st).stamp(), nil
}

// open opens a regular file of d. Whatever has taken its place meanwhile is not waited for and is errNotRegular.
func (d folder) open(name string) (*regular, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|
			unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = ErrNotRegular
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &regular{fd: fd, stat: statOf(&st)}, nil
}

// lstat looks at an entry of d.
func (d folder) lstat(name string) (stat, error) {
	var st unix.Stat_t
	_, err := retry(func() (int, error) { return 0, unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return stat{}, err
	}
	return statOf(&st), nil
}

// A regular is an open regular file. It is read by plain system calls: the poller of os.File has no use for it.
type regular struct {
	fd int
	stat
	read  int64 // bytes
	whole bool  // the size is the truth: what was read up to it is all
}

func (r *regular) Read(p []byte) (int, error) {
	if r.whole && r.read > 0 && r.read == r.size {
		return 0, io.EOF // without asking for it
	}
	n, err := retry(func() (int, error) { return unix.Read(r.fd, p) })
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	r.read += int64(n)
	return n, nil
}

// now is the stat of the open file as it is now.
func (r *regular) now() (stat, error) {
	var st unix.Stat_t
	if err := unix.Fstat(r.fd, &st); err != nil {
		return stat{}, err
	}
	return statOf(&st), nil
}

func (r *regular) close() { _ = unix.Close(r.fd) } // nothing was written

// A stat is what a walk wants to know about a file.
type stat struct {
	regular  bool
	size     int64
	mtime    time.Time
	ctime    int64 // nanoseconds since 1970
	dev, ino uint64
	links    uint64
}

// stamp is what tells whether the file is the same later.
func (s stat) stamp() index.Stamp {
	return index.Stamp{ID: index.ID{Dev: s.dev, Ino: s.ino}, Size: s.size, Mtime: s.mtime.UnixNano(), Ctime: s.ctime}
}

func statOf(st *unix.Stat_t) stat {
	sec, nsec := st.Mtim.Unix()
	return stat{
		regular: st.Mode&unix.S_IFMT == unix.S_IFREG, size: st.Size, mtime: time.Unix(sec, nsec), ctime: st.Ctim.Nano(),
		//nolint:unconvert // the types differ between systems
		dev: uint64(st.Dev), ino: uint64(st.Ino), links: uint64(st.Nlink),
	}
}

// fileStat is the stat of a file that was opened by name.
func fileStat(info fs.FileInfo) stat {
	out := stat{regular: info.Mode().IsRegular(), size: info.Size(), mtime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		//nolint:unconvert // the types differ between systems
		out.dev, out.ino, out.links = uint64(st.Dev), uint64(st.Ino), uint64(st.Nlink)
	}
	return out
}

// vanished says that an entry went away, or became a link, between its listing and its opening.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.EMLINK) || errors.Is(err, ErrNotRegular)
}

// full says that this process or the system has no descriptor left.
func full(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }
