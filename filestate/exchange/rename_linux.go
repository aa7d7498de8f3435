package exchange

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// RenameNew renames without replacing. errors.ErrUnsupported: the file system cannot.
func RenameNew(dir *os.Root, from, to string) error {
	return renameat2(dir, from, to, unix.RENAME_NOREPLACE)
}

// Swap gives two names of a directory each other's file, in one step. errors.ErrUnsupported: the file system cannot.
func Swap(dir *os.Root, a, b string) error { return renameat2(dir, a, b, unix.RENAME_EXCHANGE) }

func renameat2(dir *os.Root, from, to string, flags uint) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing is written through it
	fd := int(d.Fd())
	return lacking(unix.Renameat2(fd, from, fd, to, flags))
}

// lacking turns what file systems without these flags answer into errors.ErrUnsupported. EPERM is among it, since some
// FUSE file systems and filters of system calls answer so; where it means what it says, the plain rename says it again.
func lacking(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) ||
		errors.Is(err, unix.ENOTSUP) {
		return errors.ErrUnsupported
	}
	return err
}
