//go:build !unix

package listen

import (
	"context"
	"errors"
	"io/fs"
	"net"
)

// listenUnix refuses: rights of a socket's path are not those of a file here, so everybody could call it.
func listenUnix(context.Context, string, fs.FileMode) (net.Listener, error) {
	return nil, errors.New("sockets with a path are served on Unix only")
}
