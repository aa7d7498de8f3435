package journal

import (
	"errors"
	"syscall"
)

// An UnreadError says that a part of the journal cannot be read now (EIO, EMFILE, EACCES …), so that there may be more
// than what was found.
type UnreadError struct{ Err error }

// Error says why.
func (e *UnreadError) Error() string { return "not all of the journal can be read: " + e.Err.Error() }

// Unwrap returns the first cause.
func (e *UnreadError) Unwrap() error { return e.Err }

// unread collects why a walk could not read something. The zero unread is ready.
type unread struct{ cause error }

// add takes an error of a day or a note. What is gone or damaged, or no directory, holds nothing that could be read
// later.
func (u *unread) add(err error) {
	system, ok := errors.AsType[syscall.Errno](err)
	if ok && u.cause == nil && system != syscall.ENOENT && system != syscall.ENOTDIR {
		u.cause = err
	}
}

// err returns the *UnreadError if there was one, since the journal cannot say then that something is missing; otherwise
// other.
func (u *unread) err(other error) error {
	if u.cause == nil {
		return other
	}
	return &UnreadError{u.cause}
}
