// Package filestate is the ledger: what a session has seen of each file, and the only hand that changes files.
//
// Content decides, never the clock: a change is made only to bytes that the session has seen. Paths
// arrive resolved and permitted, as a directory handle and a name below it; Path is only the key. The
// package knows no tools, no sessions and no MCP: it gets a function that makes new bytes from old ones.
package filestate

import (
	"context"
	"errors"
	"os"
)

// A File is a file as it will be reached: Dir is a handle on the deepest existing directory on the
// way, Name the rest of the path below it, Path the canonical absolute path (links resolved), which
// is what memory and locks go by. workspace.Place has the same fields and converts.
type File struct {
	Dir  *os.Root
	Name string
	Path string
}

func (f File) Close() error { panic("skeleton") }

// A Version identifies a file's whole content, and says whether all of it was shown. The form is
// given in tools.md.
type Version string

// Options of a Ledger. A nil field has the meaning given.
type Options struct {
	Memory Memory // what was seen; nil: in this process only
	Locker Locker // one writer per path; nil: lock files in Dir, good for all processes of one host
	Dir    string // private directory for lock files
	Fast   bool   // skip the fsyncs (config durability = "fast")
}

// A Ledger is one session's view of files. It is safe for concurrent use.
type Ledger struct {
	// unexported
}

func New(o Options) *Ledger { panic("skeleton") }

// Open opens a regular file for reading. FIFOs, devices, sockets and directories are refused with
// ErrNotRegular without blocking.
func (l *Ledger) Open(ctx context.Context, f File) (*Reading, error) { panic("skeleton") }

// A Reading is an open file with the stamp that it had before its first byte was read.
type Reading struct {
	// unexported
}

func (r *Reading) ReadAt(p []byte, off int64) (int, error) { panic("skeleton") }
func (r *Reading) Size() int64                             { panic("skeleton") }
func (r *Reading) Close() error                            { panic("skeleton") }

// Saw remembers that the session has seen these spans (none: the whole file). It hashes the whole
// content in a stream; a file over 1 GiB, which cannot be edited, is not remembered and has no version.
// ErrMoved: the file changed while it was read; the caller opens it again, at most three times.
// ErrMemory comes with a valid Sight: the content may be shown, but was not remembered.
func (r *Reading) Saw(ctx context.Context, spans ...Span) (Sight, error) { panic("skeleton") }

// A Sight is what one Saw found. A session's ledger remembers its last 5,000 files.
type Sight struct {
	Version Version
	Again   int // how often in a row exactly these spans were seen with this content before
}

// A Span is a range of bytes, [From, To).
type Span struct{ From, To int64 }

// An Edit changes or creates one file.
type Edit struct {
	File    File
	Version Version // what the caller says it has seen; "" : only the ledger's memory counts
	Whole   bool    // the change replaces everything, so everything must have been seen
	Unseen  bool    // config edit.guard = "relaxed": what was seen does not matter, Change proves enough
	// Change makes the new content from the old one (nil: there is no file yet). It is pure, is called
	// at most once, and its error is returned as it is with the file untouched.
	Change func(old []byte) ([]byte, error)
}

// By says on whose behalf a change is made; it goes to the journal.
type By struct{ Principal, Session, Call, Tool string }

// A Change is one applied Edit.
type Change struct {
	Path          string
	Before, After Version
	Old, New      []byte
	Durable       bool // false: applied, but the directory could not be synced
}

// Update applies edits, all or none. Files are locked in the order of their paths.
func (l *Ledger) Update(ctx context.Context, by By, edits ...Edit) ([]Change, error) {
	panic("skeleton")
}

// Accept says that the difference in e was shown to the model: it now knows the new content.
func (l *Ledger) Accept(ctx context.Context, e *StaleError) error { panic("skeleton") }

// Changed says which of these files (none: of all seen ones) no longer hold what was seen. For the
// hint after a shell command, and after hooks.
func (l *Ledger) Changed(ctx context.Context, paths ...string) ([]*StaleError, error) {
	panic("skeleton")
}

// Forget drops what was seen of path.
func (l *Ledger) Forget(ctx context.Context, path string) error { panic("skeleton") }

// Clone returns a Ledger that starts with the same knowledge and shares none afterwards.
func (l *Ledger) Clone(ctx context.Context, m Memory) (*Ledger, error) { panic("skeleton") }

var (
	ErrNotRead    = errors.New("file has not been read")
	ErrPartRead   = errors.New("only part of the file has been read")
	ErrMoved      = errors.New("file changed while it was read")
	ErrNotRegular = errors.New("not a regular file")
	ErrTooLarge   = errors.New("file is over 1 GiB")
	ErrLocked     = errors.New("another writer holds the file")
	ErrMemory     = errors.New("read state is not available")
)

// A StaleError says that the content is not what the session has seen.
type StaleError struct {
	Path     string
	Was, Now Version
	Old      []byte // nil if the old content is no longer held (25 MiB per process are)
	New      []byte
}

// Memory keeps what was seen. Any Store narrowed to a session will do.
type Memory interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Set(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
	Keys(ctx context.Context, prefix string) ([]string, error)
}

// A Locker lets one writer at a file, over sessions and processes; keys are the canonical path and
// the device and inode. It waits at most 10 s. server/state has one that also covers replicas which
// share a volume, by leases.
type Locker interface {
	Lock(ctx context.Context, keys ...string) (unlock func(), err error)
}
