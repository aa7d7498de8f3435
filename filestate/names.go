package filestate

import "codehand/filestate/seen"

// Callers of a Ledger pass and get these types of seen. They have names here, so that a caller imports one room and
// does not depend on the records of seen.

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
