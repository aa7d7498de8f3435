package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrSpelling says that the path is a network or device spelling, which is never opened.
var ErrSpelling = errors.New("network or device path")

// ErrTooManyLinks says that a path leads through more than 40 links, or through links that never end.
var ErrTooManyLinks = errors.New("too many links")

// ErrChanging says that a path was replaced again and again while it was being walked. Trying again may help.
var ErrChanging = errors.New("path keeps changing while it is opened")

// ErrSystem says that a path leads into a file system of the kernel that is mounted below a root: procfs, sysfs,
// devtmpfs and their like, where reading and writing are commands to the kernel.
var ErrSystem = errors.New("in a file system of the kernel")

// An InvalidError says that the text is no path: empty, with a NUL, too long, `~user`.
type InvalidError struct{ Path, Reason string }

func (e *InvalidError) Error() string { return e.Path + ": " + e.Reason }

// An OutsideError says that the path, or the target of a link on its way, lies in no area, or, with Write, in one
// that may only be read.
type OutsideError struct {
	Path   string
	Link   string // the link that leads out; "": the path itself is outside
	Target string // where Link points, absolute; "" without Link
	Roots  []string
	Whole  []string // the roots without a Narrowing
	Wanted []string // what a Narrowing named that leaves no root; nil: there are roots, or there were none before
}

func (e *OutsideError) Error() string {
	if e.Link != "" {
		return e.Path + " is outside the allowed directories: " + e.Link + " is a link to " + e.Target
	}
	return e.Path + " is outside the allowed directories"
}

// An UnlistedError says that a directory on the way may not be opened, which is needed even for a file whose name is
// known: with the right to enter it, but not to list it, other programs reach the file.
type UnlistedError struct {
	Dir string // inside the roots, with all links followed
	Err error  // what the system said; fs.ErrPermission
}

func (e *UnlistedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnlistedError) Unwrap() error { return e.Err }

// A MissingError says that there is no such file.
type MissingError struct {
	Path string
}

func (e *MissingError) Error() string { return e.Path + " does not exist" }

// Unwrap returns fs.ErrNotExist.
func (e *MissingError) Unwrap() error { return os.ErrNotExist }

// Swapped says whether err is an os.Root's own: that of a name which leads out of it. The Name of a Place did not when
// it was resolved, so something else stands there since. Trying again may help.
func Swapped(err error) bool {
	p, ok := errors.AsType[*fs.PathError](err)
	if !ok || errors.Is(err, fs.ErrClosed) {
		return false
	}
	_, system := errors.AsType[syscall.Errno](p.Err)
	return !system
}

// metLink says whether err can be that of a link, read by us or by an os.Root that met it, in whose place something
// else was when it was read.
func metLink(err error) bool { return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ELOOP) }
