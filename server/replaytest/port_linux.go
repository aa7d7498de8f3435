package replaytest

import (
	"fmt"
	"syscall"
	"testing"
)

// Reserved is an address that a server of the test may take again and again. As long as the test runs no other program
// gets its port by chance: Linux gives neither a listener nor a connection a port that a socket is bound to, and lets
// who asks for it by number share it with a socket that does not listen (SO_REUSEADDR).
func Reserved(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) }) // nothing was written to it
	must(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(fd)
	must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
}
