package filestate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The errors that come out of this package, besides the types below and what the system says.
var (
	ErrNotRead    = errors.New("file has not been read")
	ErrPartRead   = errors.New("only part of the file has been read")
	ErrMoved      = errors.New("file changed while it was read")
	ErrNotRegular = errors.New("not a regular file")
	ErrDirectory  = errors.New("is a directory")
	ErrTooLarge   = errors.New("file is over 1 GiB")
	ErrLocked     = errors.New("another writer holds the file")
	ErrMemory     = errors.New("read state is not available")
	ErrVersion    = errors.New("malformed version") // the caller's input is wrong, whatever the disk holds
)

// A StaleError says that the content is not what the session has seen. Old and New belong to the
// ledger, too, and are only read.
type StaleError struct {
	Path     string
	Was, Now Version // Now is "" if there is no such file any more
	Sums     Sums    // only of Changed
	Old      []byte  // nil if the old content is no longer held (Contents says how much is)
	New      []byte  // nil if it was not read: the name is a link now, or Changed was asked about all files

	stamp Stamp // of New; the zero Stamp if it is not known
}

// Error names the path and both versions.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%s is not what was seen: version was %q, is %q", e.Path, e.Was, e.Now)
}

// A PartReadError is an ErrPartRead that says which part it was.
type PartReadError struct {
	Path    string
	Seen    []Lines // in order; empty if the caller's version is all that is known
	Total   int     // lines of the file
	Version Version // that was given, if it is that of a part of a large file and the edit changes more: the part is Seen
}

// Lines is a range of lines, counted from 1, both ends included.
type Lines struct{ From, To int }

// Error names the ranges.
func (e *PartReadError) Error() string {
	parts := make([]string, len(e.Seen))
	for i, s := range e.Seen {
		parts[i] = fmt.Sprintf("%d-%d", s.From, s.To)
	}
	return fmt.Sprintf("%s: %v (lines %s of %d)", e.Path, ErrPartRead, strings.Join(parts, ", "), e.Total)
}

// Is matches ErrPartRead.
func (e *PartReadError) Is(target error) bool { return target == ErrPartRead }

// A NotRegularError is an ErrNotRegular that says what the file is.
type NotRegularError struct {
	Path string
	Kind string // "FIFO", "socket" or "device"
}

// Error names the path and the kind.
func (e *NotRegularError) Error() string { return e.Path + " is a " + e.Kind }

// Is matches ErrNotRegular.
func (e *NotRegularError) Is(target error) bool { return target == ErrNotRegular }

// A WriteError says that a step of a change went wrong. Every file of the Update is as it was before.
type WriteError struct {
	Path string
	Step string // what was being done: "read", "create", "write", "sync", "rename" …
	Err  error  // what the system said, without the name of the temporary file
}

// Error names path, step and cause.
func (e *WriteError) Error() string { return fmt.Sprintf("change %s: %s: %v", e.Path, e.Step, e.Err) }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// A RollbackError says that an Update of several files went wrong half way, and that taking back the
// files that were already changed went wrong, too. It is the only error after which files may differ
// from what they were.
type RollbackError struct {
	ID    string // of the change in the journal, whose undo restores what was; "": there is no journal
	Err   error  // why the Update stopped
	Files []Left
}

// Left says what an Update that could not be taken back left at one path.
type Left struct {
	Path    string
	Changed bool  // it holds the new content, or what somebody else made of it
	Err     error // why it was not taken back; nil if Changed is false
}

// Error lists the files that kept their new content.
func (e *RollbackError) Error() string {
	var paths []string
	for _, f := range e.Files {
		if f.Changed {
			paths = append(paths, fmt.Sprintf("%s (%v)", f.Path, f.Err))
		}
	}
	return fmt.Sprintf("%v; not taken back: %s", e.Err, strings.Join(paths, ", "))
}

// Unwrap returns why the Update stopped.
func (e *RollbackError) Unwrap() error { return e.Err }

// cause strips the layers that name an operation and a path: the paths below a handle, and above all
// the names of temporary files, tell the reader nothing.
func cause(err error) error {
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
