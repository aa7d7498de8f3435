package sandbox

import (
	"errors"
	"io"
	"os"
)

// Output reads what a program prints into a pipe; r is the end for reading. A deadline of r ends the wait for more and
// loses nothing: what the pipe holds then is read, and io.EOF comes after it. So a caller that sets one after the end
// of the program gets all that it printed, even if a process that cannot be killed keeps the pipe open. Any other error
// means that some of it may be missing; where the system has no deadlines for pipes, that is also what r says once it
// is closed.
func Output(r *os.File) io.Reader { return &output{file: r} }

// An output belongs to one goroutine, as every reader.
type output struct {
	file *os.File
	late bool // the deadline has passed
}

// Read is not left to the file alone: that looks at its deadline before it looks at the pipe (Go 1.26,
// internal/poll/fd_unix.go), so a reader that had no processor until then would find nothing.
func (o *output) Read(b []byte) (int, error) {
	if !o.late {
		n, err := o.file.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.late = true
	}
	return readNow(o.file, b)
}
