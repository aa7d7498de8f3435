package disk

import (
	"errors"
	"io/fs"
	"os"
)

// Why a file is not opened, or not read whole.
var (
	ErrMoved      = errors.New("file changed while it was read")
	ErrNotRegular = errors.New("not a regular file")
	ErrDirectory  = errors.New("is a directory")
	ErrTooLarge   = errors.New("file is over 1 GiB")
)

// A NotRegularError is an ErrNotRegular that says what the file is.
type NotRegularError struct {
	Path string
	Kind string // "FIFO", "socket" or "device"
}

// Error names the path and the kind.
func (e *NotRegularError) Error() string { return e.Path + " is a " + e.Kind }

// Is matches ErrNotRegular.
func (e *NotRegularError) Is(target error) bool { return target == ErrNotRegular }

// Cause strips the layers that name an operation and a path: the paths below a handle, and above all
// the names of temporary files, tell the reader nothing.
func Cause(err error) error {
	for {
		switch e := err.(type) { //nolint:errorlint // only the outermost layer is stripped
		case *fs.PathError:
			err = e.Err
		case *os.LinkError:
			err = e.Err
		case *os.SyscallError:
			err = e.Err
		default:
			return err
		}
	}
}
