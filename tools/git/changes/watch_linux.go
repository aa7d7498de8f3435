package changes

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// errNoWatch says that the system watches no more directories.
var errNoWatch = errors.New("no more directories can be watched")

// A watch collects the names that change in directories, in the kernel's own queue, until it is asked. It runs nothing.
// The nil watch knows nothing.
type watch struct {
	top  string
	fd   int
	dirs map[int]string // by the number of the watch
	ids  map[string]int
	most int // directories; for tests
}

// Changes through another name of a file that lies elsewhere, and those that another machine makes, are told by no file
// system: a Tree looks at files with several names itself, and only these file systems are taken to be of this machine.
var local = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, 0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */}

const watched = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// newWatch returns nil where the system cannot tell what changes.
func newWatch(top string) *watch {
	var s unix.Statfs_t
	if unix.Statfs(top, &s) != nil || !slices.Contains(local, int64(s.Type)) { //nolint:unconvert // differs by machine
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &watch{top: top, fd: fd, dirs: make(map[int]string), ids: make(map[string]int), most: maxFiles}
}

func (w *watch) close() {
	if w != nil {
		_ = unix.Close(w.fd) // nothing was written to it
	}
}

// add watches a directory. One that is gone is none. The error is errNoWatch, or fs.ErrPermission.
func (w *watch) add(name string) error {
	if w == nil {
		return nil
	}
	if len(w.dirs) >= w.most {
		return errNoWatch
	}
	id, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.top, name), watched)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return err
	case err != nil:
		return errNoWatch
	}
	w.dirs[id], w.ids[name] = name, id
	return nil
}

// remove ends the watch of a directory.
func (w *watch) remove(name string) {
	if w == nil {
		return
	}
	if id, ok := w.ids[name]; ok {
		_, _ = unix.InotifyRmWatch(w.fd, uint32(id)) // it ends with the directory, too
		delete(w.ids, name)
		delete(w.dirs, id)
	}
}

// changed returns the files and directories whose names, contents or attributes changed since it was last asked, the
// outer ones first. A directory is among them only if it came or went. whole: there are no others.
func (w *watch) changed() (files, dirs []string, whole bool) {
	seen, buf := make(map[string]bool), make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil || n <= 0 {
			return nil, nil, false
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			id, mask := int(int32(binary.NativeEndian.Uint32(b))), binary.NativeEndian.Uint32(b[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			if size > len(b) {
				return nil, nil, false
			}
			name := string(bytes.TrimRight(b[unix.SizeofInotifyEvent:size], "\x00"))
			b = b[size:]
			if mask&(unix.IN_Q_OVERFLOW|unix.IN_UNMOUNT) != 0 {
				return nil, nil, false
			}
			in, ok := w.dirs[id]
			if ok && mask&unix.IN_IGNORED != 0 { // it is gone; the one above says so, but for the top
				if in == "." {
					return nil, nil, false
				}
				continue
			}
			at := path.Join(in, name)
			isDir := mask&unix.IN_ISDIR != 0
			if !ok || name == "" || at == ".git" || seen[at] && !isDir ||
				isDir && mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) == 0 {
				continue
			}
			seen[at] = true
			if isDir {
				dirs = append(dirs, at)
			} else {
				files = append(files, at)
			}
		}
	}
	slices.Sort(files)
	slices.Sort(dirs)
	return files, slices.Compact(dirs), true
}
