//go:build !linux

package control

import (
	"errors"
	"net"
	"os"
)

// maxPath is how long the path of a socket may be, in bytes.
const maxPath = 103

// reach returns the path of the socket.
func reach(dir string) (place string, release func(), err error) {
	if len(socketIn(dir)) > maxPath {
		return "", nil, errors.New("the path of the data directory is too long for a socket")
	}
	_, err = os.Stat(dir)
	return socketIn(dir), func() {}, err
}

// mayAsk is always true: the mode of the socket and of its directory keep other users out.
func mayAsk(net.Conn) bool { return true }
