package filestate

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
)

const (
	maxSize   = 1 << 30   // bytes of a file that can be hashed and edited
	chunkSize = 256 << 10 // bytes per read; ctx is looked at for each
	openTries = 3         // how often a name that changes between look and open is tried
)

// OpenRegular opens a regular file for reading, without blocking, and remembers nothing of it. Errors are those of
// Ledger.Open.
func OpenRegular(f File) (*os.File, error) {
	file, _, err := openRegular(f.Dir, f.Name, f.Path)
	return file, err
}

// openRegular opens the regular file name below dir. The name is looked at before it is opened, since
// opening alone has effects on a FIFO or a device, and after, since it may have been replaced. A name
// that is a link now, after it was resolved, is ErrMoved: the caller must resolve it again.
func openRegular(dir *os.Root, name, path string) (*os.File, Stamp, error) {
	for range openTries {
		before, err := dir.Lstat(name)
		if err != nil {
			return nil, Stamp{}, at("open", path, err)
		}
		if err := regular(before, path); err != nil {
			return nil, Stamp{}, err
		}
		f, err := dir.OpenFile(name, readFlags, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, Stamp{}, at("open", path, err)
		}
		after, err := f.Stat()
		if err == nil && os.SameFile(before, after) && after.Mode().IsRegular() {
			settle(f)
			return f, stampOf(after), nil
		}
		_ = f.Close() // nothing was written to it
	}
	return nil, Stamp{}, fmt.Errorf("open %s: %w", path, ErrMoved)
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

// descend opens the directory rel below dir, component by component, and follows no link: os.Root
// would follow those that stay below dir, and the path would no longer be the one that was resolved.
// The caller closes the result; dir stays open.
func descend(dir *os.Root, rel string) (*os.Root, error) {
	at, err := dir.OpenRoot(".")
	if err != nil || rel == "." || rel == "" {
		return at, err
	}
	for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
		next, err := child(at, part)
		_ = at.Close() // a directory handle holds no data
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// child opens the directory name in dir and proves that it is the one that the name stood for.
func child(dir *os.Root, name string) (*os.Root, error) {
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
	next, err := dir.OpenRoot(name + "/.") // without the dot, a FIFO that was put there meanwhile would be waited for
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

var errNotDirectory = errors.New("not a directory")

// readAll reads a file of the given size, and says ErrMoved if that is not its size. The slice has
// room for no more, so that an append to it copies.
func readAll(ctx context.Context, f *os.File, size int64) ([]byte, error) {
	b := make([]byte, size+1) // one more byte shows growth
	var n int
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		got, err := f.ReadAt(b[n:min(n+chunkSize, len(b))], int64(n))
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

// holds says whether a file has that content, and holds no second one in memory.
func holds(ctx context.Context, f *os.File, content []byte) (bool, error) {
	b := make([]byte, min(chunkSize, len(content)+1)) // one more byte shows growth
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
	return &fs.PathError{Op: op, Path: path, Err: cause(err)}
}
