//go:build unix

package state

import (
	"errors"
	"os"
	"syscall"
)

// openFlags refuse a link, and do not wait for the other end of a FIFO.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC

// lockFlags are those of the lock file.
const lockFlags = os.O_CREATE | os.O_RDWR | openFlags

// isFull says whether the disk, the quota or the largest size of a file is reached.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}
