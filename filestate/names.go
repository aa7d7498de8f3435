package filestate

import "codehand/filestate/seen"

// What a caller of a Ledger says and is told about what was seen has its name here, too: it deals with one room, and
// the records behind the names are no business of its.

type (
	// A Version identifies a content, and says whether all of it was shown.
	Version = seen.Version
	// A Span is a range of bytes, [From, To).
	Span = seen.Span
	// Lines is a range of lines, counted from 1, both ends included.
	Lines = seen.Lines
	// Memory keeps what was seen.
	Memory = seen.Memory
	// Contents holds old contents for diffs.
	Contents = seen.Contents
)

// ErrMemory says that the Memory failed: what was seen could not be looked up or noted.
var ErrMemory = seen.ErrMemory

// NewContents holds at most maxBytes; 0: 25 MiB. One is made per process and given to all ledgers.
func NewContents(maxBytes int) *Contents { return seen.NewContents(maxBytes) }
