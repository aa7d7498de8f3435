package disk

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// SyncDir writes a directory's entries to the disk.
func SyncDir(dir *os.Root) error {
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

// Unsynced says that the file system has no fsync for this: no failure, but no promise either.
func Unsynced(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
