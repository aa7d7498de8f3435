package filestate

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames without replacing. errors.ErrUnsupported: the file system cannot.
func renameNew(dir *os.Root, temp, name string) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing is written through it
	fd := int(d.Fd())
	err = unix.Renameat2(fd, temp, fd, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) {
		return errors.ErrUnsupported
	}
	return err
}
