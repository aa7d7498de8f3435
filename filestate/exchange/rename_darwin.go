package exchange

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameNew renames without replacing. errors.ErrUnsupported: the file system cannot.
func RenameNew(dir *os.Root, from, to string) error {
	return renameatx(dir, from, to, unix.RENAME_EXCL)
}

// Swap gives two names of a directory each other's file, in one step. errors.ErrUnsupported: the file system cannot.
func Swap(dir *os.Root, a, b string) error { return renameatx(dir, a, b, unix.RENAME_SWAP) }

func renameatx(dir *os.Root, from, to string, flags uint32) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing is written through it
	fd := int(d.Fd())
	err = unix.RenameatxNp(fd, from, fd, to, flags)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
