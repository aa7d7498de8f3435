package filestate

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// publishNew gives the file temp its real name, unless that name exists by now: fs.ErrExist.
func publishNew(dir *os.Root, temp, name string) error {
	err := renameNew(dir, temp, name)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	// A second name is as atomic, and also fails if the name exists.
	switch err := dir.Link(temp, name); {
	case err == nil:
		// The file has both names now. If the first cannot be taken off, the change still holds, and
		// sweep finds the left-over.
		_ = dir.Remove(temp)
		return nil
	case errors.Is(err, fs.ErrExist):
		return err
	}
	// No hard links either (FAT, some FUSE): what is left is a look just before.
	if _, err := dir.Lstat(name); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return dir.Rename(temp, name)
}

// syncDir writes a directory's entries to the disk.
func syncDir(dir *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there; the file system's own journal orders the rename
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	err = d.Sync()
	_ = d.Close() // nothing was written through it
	return err
}

// unsynced says that the file system has no fsync for this: no failure, but no promise either.
func unsynced(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
