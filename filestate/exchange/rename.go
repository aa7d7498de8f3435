package exchange

import (
	"errors"
	"io/fs"
	"os"
)

// PublishNew gives the file temp its real name, unless that name exists by now: fs.ErrExist.
func PublishNew(dir *os.Root, temp, name string) error {
	err := RenameNew(dir, temp, name)
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
