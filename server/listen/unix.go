//go:build unix

package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// masked is held while the umask of the process is another: two at once would give each other's back.
var masked sync.Mutex

// private gives a socket its mode before it has a name, as only Linux does.
func private(_, _ string, socket syscall.RawConn) error {
	var failed error
	err := socket.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
	return errors.Join(err, failed)
}

// listenUnix makes a socket. From its first moment on only this user can connect; afterwards it gets mode. It replaces
// what is at the path only if that is a socket without a listener: the rest of a killed process.
func listenUnix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if err := removeDead(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: private}
	if runtime.GOOS != "linux" {
		config.Control = nil
		masked.Lock()
		defer masked.Unlock()
		defer syscall.Umask(syscall.Umask(0o077)) // of the whole process
	}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = l.Close() // not served
		return nil, err
	}
	return l, nil
}

// removeDead makes room at path. The error is EADDRINUSE if a process listens there.
func removeDead(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("there is a file that is no socket: %w", syscall.EEXIST)
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close() // it only asked
		return syscall.EADDRINUSE
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return err
}
