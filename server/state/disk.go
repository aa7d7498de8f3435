package state

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A file has the operations that the log needs. Tests use one that fails.
type file interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Stat() (fs.FileInfo, error)
	Close() error
}

// A disk is one directory of files. Errors name the file.
type disk interface {
	// open opens a regular file for reading and writing. With flags of os it may be made.
	open(name string, flags int) (file, error)
	rename(from, to string) error
	remove(name string) error
	names() ([]string, error)
	// sync returns when the names are on the disk, too.
	sync() error
	// path is for people.
	path(name string) string
}

// hostDisk is a directory of the operating system.
type hostDisk struct{ dir string }

// openDisk makes the directory if it is missing. A link is refused: another user may have chosen where it leads.
func openDisk(dir string) (disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory; move it away", dir)
	}
	return hostDisk{dir}, nil
}

func (d hostDisk) path(name string) string { return filepath.Join(d.dir, name) }

func (d hostDisk) open(name string, flags int) (file, error) {
	f, err := os.OpenFile(d.path(name), os.O_RDWR|openFlags|flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; move it away", f.Name())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

func (d hostDisk) rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

func (d hostDisk) remove(name string) error { return os.Remove(d.path(name)) }

func (d hostDisk) names() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (d hostDisk) sync() error { return syncDir(d.dir) }
