//go:build unix && !aix && !solaris

package media

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks an open directory until it is closed, which the end of the process does, too. The programs do not
// inherit it: files are opened to be closed when another program begins.
func tryLock(dir *os.File) lockState {
	conn, err := dir.SyscallConn()
	if err != nil {
		return lockNone
	}
	var locked error
	if err := conn.Control(func(fd uintptr) {
		for locked = syscall.EINTR; errors.Is(locked, syscall.EINTR); {
			locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
		}
	}); err != nil {
		return lockNone
	}
	switch {
	case locked == nil:
		return lockGot
	case errors.Is(locked, syscall.EWOULDBLOCK):
		return lockTaken
	}
	return lockNone
}
