package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// BeingWritten says whether a program has a file open for writing, where the system tells: a read lease is refused just
// then (fcntl(2), F_SETLEASE). The lease is given back at once, so that no other program ever waits for it.
func BeingWritten(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false // the file is closed
	}
	busy := false
	_ = raw.Control(func(fd uintptr) { // an error says that the file is closed
		_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
		busy = errors.Is(err, unix.EAGAIN)
		if err == nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK) // it was just given
		}
	})
	return busy
}
