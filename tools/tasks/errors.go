package tasks

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDepth says that metadata is nested too deep to be kept.
var ErrDepth = errors.New("metadata is nested more than 100 deep")

// An UnknownError says that there are no tasks with these ids.
type UnknownError struct {
	IDs   []string // as the caller wrote them
	Known []string // ids of all tasks
	// Damaged are the files of those that should be there.
	Damaged []Damaged
}

// Error names the ids.
func (e *UnknownError) Error() string { return "no task " + strings.Join(e.IDs, ", ") }

// A CycleError says that a link would close a circle.
type CycleError struct {
	Circle []string // each blocks the next; the first and the last are the same
}

// Error names the circle.
func (e *CycleError) Error() string { return "circle of tasks: " + strings.Join(e.Circle, ", ") }

// A LimitError says that the list has as many tasks as it may have.
type LimitError struct {
	Tasks, Completed int
	Damaged          int // files that count, too
}

// Error gives the number.
func (e *LimitError) Error() string { return fmt.Sprintf("the list has %d tasks", e.Tasks) }

// A SizeError says that the list would take more bytes than can be kept.
type SizeError struct {
	Size, Limit int
}

// Error gives both.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the list would take %d bytes, at most %d", e.Size, e.Limit)
}

// A DirectoryError says what went wrong with the files of a Directory.
type DirectoryError struct {
	Name    string // of the file in the directory; "": the directory itself
	Step    string // what was being done: "read", "write", "rename" …
	Writing bool   // some of the files may be changed already; the next change mends what is left
	Err     error
}

// Error names file, step and cause.
func (e *DirectoryError) Error() string {
	if e.Name == "" {
		return e.Step + " the directory of tasks: " + e.Err.Error()
	}
	return e.Step + " " + e.Name + " in the directory of tasks: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *DirectoryError) Unwrap() error { return e.Err }
