package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The limits of reading.
const (
	MaxSize   = 1 << 30   // bytes of a file that can be hashed and edited
	ChunkSize = 256 << 10 // bytes per read; ctx is looked at for each
	openTries = 3         // how often a name that changes between look and open is tried
)

// KeptMode are the bits of a mode that belong to a file as its content does: a change keeps them.
const KeptMode = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// OpenRegular opens the regular file name below dir. The name is looked at before it is opened, since
// opening alone has effects on a FIFO or a device, and after, since it may have been replaced. A name
// that is a link now, after it was resolved, is ErrMoved: the caller must resolve it again.
func OpenRegular(dir *os.Root, name, path string) (*os.File, Stamp, error) {
	return openRegular(dir, name, path, dir.OpenFile)
}

// OpenAsked is OpenRegular that asks linked about the open file if that file has, or may have, other names: since it
// was resolved, the name can have become a hard link to another file. The error is that of linked; nil permits every
// file.
func OpenAsked(dir *os.Root, name, path string, linked func(fs.FileInfo) error) (*os.File, Stamp, error) {
	f, stamp, err := OpenRegular(dir, name, path)
	if err != nil || linked == nil || stamp.Nlink == 1 {
		return f, stamp, err
	}
	info, err := f.Stat()
	if err == nil {
		err = linked(info)
	}
	if err != nil {
		_ = f.Close() // nothing was written to it
		return nil, Stamp{}, err
	}
	return f, stamp, nil
}

func openRegular(dir *os.Root, name, path string,
	open func(string, int, fs.FileMode) (*os.File, error)) (*os.File, Stamp, error) {
	var stays staying
	for range openTries {
		before, err := dir.Lstat(name)
		if err != nil {
			return nil, Stamp{}, at("open", path, err)
		}
		if err := regular(before, path); err != nil {
			return nil, Stamp{}, err
		}
		f, err := open(name, readFlags, 0)
		if stays.refused(before, err) {
			return nil, Stamp{}, at("open", path, err)
		}
		if errors.Is(err, fs.ErrNotExist) || metLink(err) {
			continue
		}
		if err != nil {
			return nil, Stamp{}, at("open", path, err)
		}
		after, err := f.Stat()
		if err == nil && os.SameFile(before, after) && after.Mode().IsRegular() {
			if stamp := StampOf(after); !relinked(before, stamp) {
				settle(f)
				return f, stamp, nil
			}
		}
		_ = f.Close() // nothing was written to it
	}
	return nil, Stamp{}, fmt.Errorf("open %s: %w", path, ErrMoved)
}

// relinked says whether a file got or lost a name between the look and the opening, so that neither count of its names
// tells what it had when it was opened. A change of the content sets both times, one of the names only the second.
func relinked(before fs.FileInfo, after Stamp) bool {
	s := StampOf(before)
	return s.Nlink != after.Nlink || s.Ctime != after.Ctime && s.Mtime == after.Mtime
}

// metLink says that an os.Root met a link, which stands there since the look. If that leads out, it has an error of its
// own, which is not exported and none of the system's; if the link was gone when it was read, that is EINVAL, of which
// staying makes sure.
func metLink(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || errors.Is(err, fs.ErrClosed) {
		return false
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ELOOP) {
		return true
	}
	_, system := errors.AsType[syscall.Errno](p.Err)
	return !system
}

// A staying tells the EINVAL of a file system from that of a link that came and went: openTries times in a row, of a
// name that stood for the same thing each time, it is the file system's. A race gives it once in many thousand opens.
type staying struct {
	last  fs.FileInfo
	times int
}

// refused takes what a name stood for before it was opened, and what came of that, and says whether it is the file
// system that refuses.
func (s *staying) refused(before fs.FileInfo, err error) bool {
	if !errors.Is(err, syscall.EINVAL) || s.last != nil && !os.SameFile(s.last, before) {
		s.times = 0
	}
	s.last = before
	if errors.Is(err, syscall.EINVAL) {
		s.times++
	}
	return s.times == openTries
}

// regular refuses everything but regular files, each kind in its own way.
func regular(info fs.FileInfo, path string) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fmt.Errorf("%s %w", path, ErrDirectory)
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link now: %w", path, ErrMoved)
	case mode&fs.ModeNamedPipe != 0:
		return &NotRegularError{path, "FIFO"}
	case mode&fs.ModeSocket != 0:
		return &NotRegularError{path, "socket"}
	default:
		return &NotRegularError{path, "device"}
	}
}

// Descend opens the directory rel below dir, component by component, and follows no link: os.Root
// would follow those that stay below dir, and the path would no longer be the one that was resolved.
// The caller closes the result; dir stays open.
func Descend(dir *os.Root, rel string) (*os.Root, error) {
	at, err := dir.OpenRoot(".")
	if err != nil || rel == "." || rel == "" {
		return at, err
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		next, err := Child(at, part)
		_ = at.Close() // a directory handle holds no data
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// Child opens the directory name in dir and proves that it is the one that the name stood for.
func Child(dir *os.Root, name string) (*os.Root, error) { return child(dir, name, dir.OpenRoot) }

func child(dir *os.Root, name string, open func(string) (*os.Root, error)) (*os.Root, error) {
	want, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if want.Mode()&fs.ModeSymlink != 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrMoved}
	}
	if !want.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotDirectory}
	}
	var next *os.Root
	var stays staying
	for {
		next, err = open(name + "/.") // without the dot, a FIFO that was put there meanwhile would be waited for
		if !errors.Is(err, syscall.EINVAL) || stays.refused(want, err) {
			break
		}
		if now, again := dir.Lstat(name); again != nil || !os.SameFile(want, now) {
			break
		}
	}
	if metLink(err) && stays.times < openTries {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrMoved}
	}
	if err != nil {
		return nil, err
	}
	got, err := next.Stat(".")
	if err == nil && !os.SameFile(want, got) {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrMoved}
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}

// Reopen opens a canonical directory and follows no link on the way: if one stands there now, the path
// leads elsewhere, which the permission does not cover.
func Reopen(path string) (*os.Root, error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	rel, err := filepath.Rel(top, path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // a directory handle holds no data
	dir, err := Descend(root, rel)
	if errors.Is(err, ErrMoved) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return dir, err
}

var errNotDirectory = errors.New("not a directory")

// ReadAll reads a file of the given size, and says ErrMoved if that is not its size. The slice has
// room for no more, so that an append to it copies.
func ReadAll(ctx context.Context, f *os.File, size int64) ([]byte, error) {
	b := make([]byte, size+1) // one more byte shows growth
	var n int
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		got, err := f.ReadAt(b[n:min(n+ChunkSize, len(b))], int64(n))
		n += got
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n == len(b) {
			break
		}
	}
	if int64(n) != size {
		return nil, ErrMoved
	}
	return b[:n:n], nil
}

// Holds says whether a file has that content, and holds no second one in memory.
func Holds(ctx context.Context, f *os.File, content []byte) (bool, error) {
	b := make([]byte, min(ChunkSize, len(content)+1)) // one more byte shows growth
	for n := 0; ; {
		if err := context.Cause(ctx); err != nil {
			return false, err
		}
		got, err := f.ReadAt(b, int64(n))
		if got > len(content)-n || !bytes.Equal(b[:got], content[n:n+got]) {
			return false, nil
		}
		n += got
		if errors.Is(err, io.EOF) {
			return n == len(content), nil
		}
		if err != nil {
			return false, err
		}
	}
}

// at gives an error that names the whole path instead of the part below the handle.
func at(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: Cause(err)}
}
