package filestate

import (
	"errors"
	"fmt"
	"strings"

	"codehand/filestate/disk"
	"codehand/filestate/fault"
	"codehand/filestate/seen"
)

// The errors that come out of this package, besides the types below, those of disk, lock, journal and seen, and what
// the system says.
var (
	ErrNotRead  = errors.New("file has not been read")
	ErrPartRead = errors.New("only part of the file has been read")
	ErrVersion  = errors.New("malformed version") // the caller's input is wrong, whatever the disk holds
)

// Sums are the SHA-256 of a file's whole content before and after, in hex; "": there was no file, or it is not known.
type Sums struct{ Before, After string }

// A StaleError says that the content is not what the session has seen. Old and New belong to the
// ledger, too, and are only read.
type StaleError struct {
	Path     string
	Was, Now Version // Now is "" if there is no such file any more
	// the caller gave Was, so that only a call which gives Now can fit; the session itself may have changed the file
	Named bool
	Sums  Sums   // only of Changed
	Old   []byte // nil if the old content is no longer held (Contents says how much is)
	New   []byte // nil if it was not read: the name is a link now, or Changed was asked about all files

	Left bool // a command of the session left it so (Ledger.Left); only of Changed

	stamp disk.Stamp  // of New; the zero Stamp if it is not known
	sum   disk.Digest // of Now; none: it is not known. Only of Changed
}

// Rewritten returns the lines of New that are not those of Old, in order; where some are gone, the one that follows.
func (e *StaleError) Rewritten() []Lines {
	if e.Old == nil || e.New == nil {
		return nil
	}
	return seen.Rewritten(e.Old, e.New)
}

// Error names the path and both versions.
func (e *StaleError) Error() string {
	return fmt.Sprintf("%s is not what was seen: version was %q, is %q", e.Path, e.Was, e.Now)
}

// A PartReadError is an ErrPartRead that says which part it was.
type PartReadError struct {
	Path  string
	Seen  []Lines // in order; empty if the caller's version is all that is known
	Total int     // lines of the file
	// Version is what the caller gave, if that stands for a part of a large file, which is Seen, and the edit changes
	// more.
	Version Version
}

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

// A WriteError says that a step of a change went wrong. Every file of the Update is as it was before.
type WriteError struct {
	Path   string
	Step   string // what was being done: "read", "create", "write", "sync", "rename" …
	Err    error  // what the system said, without the name of the temporary file
	Absent bool   // there was no such file, or it is not known that there was
}

// Error names path, step and cause.
func (e *WriteError) Error() string { return fmt.Sprintf("change %s: %s: %v", e.Path, e.Step, e.Err) }

// Reading says that an old file could not be opened or read, so that nothing was begun.
func (e *WriteError) Reading() bool {
	return !e.Absent && (e.Step == string(fault.Open) || e.Step == string(fault.Read))
}

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
	Changed bool  // it holds the new content, or what another program made of it
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
