package control

import (
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"

	"codehand/tools/sandbox"
)

// maxPath is how long the path of a socket may be, in bytes.
const maxPath = 107

// reach returns a path of the socket that is short enough, for as long as release was not called.
func reach(dir string) (place string, release func(), err error) {
	if len(socketIn(dir)) <= maxPath {
		_, err := os.Stat(dir)
		return socketIn(dir), func() {}, err
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return socketIn("/proc/self/fd/" + strconv.Itoa(int(d.Fd()))), func() { _ = d.Close() }, nil
}

// mayAsk says whether a connection is of our user or root, and not of a command that codehand confines. One whose
// process has ended gets no answer, so it is no loss.
func mayAsk(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	failed := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if errors.Join(err, failed) != nil || int(peer.Uid) != os.Geteuid() && peer.Uid != 0 {
		return false
	}
	confined, known := sandbox.Confined(int(peer.Pid))
	return !confined && (known || !sandbox.ConfinedHere())
}
