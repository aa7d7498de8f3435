//go:build unix

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readFlags open a file for reading without waiting for a FIFO's writer and without taking a terminal.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// settle takes O_NONBLOCK off again: some network file systems honour it on regular files.
func settle(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return // the file is closed, and the next read says so
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) }) // it only ever made reads stricter
}
