// Package textedit finds text in the bytes of a file and replaces it, changing no other byte.
//
// It is pure: no disk, no clock, no goroutine. It knows no files and no tools.
package textedit

import "errors"

// A Text is what a file's bytes are as text.
type Text struct {
	BOM     bool // starts with the UTF-8 mark, which is not part of the text
	CRLF    int  // line ends that are \r\n
	LF      int  // line ends that are \n alone
	Invalid int  // bytes that are not UTF-8
	Lines   int
	NoEOL   bool // the last line has no line end
}

// Decode looks at content. Errors: ErrBinary (a NUL in the first 8 KiB), ErrEncoding (UTF-16, UTF-32).
func Decode(content []byte) (Text, error) { panic("skeleton") }

// A Level says how loosely a match was found.
type Level int

// The levels, tried in this order.
const (
	Exact   Level = iota
	Quotes        // typographic quotes count as straight ones
	Escapes       // \uXXXX, \xNN in Old stand for the character
)

// An Edit replaces Old by New.
type Edit struct {
	Old, New string
	All      bool // every occurrence, left to right without overlap
	Expect   int  // number of replacements there must be; 0: no expectation; over 1 implies All
}

// Done is what one Edit did.
type Done struct {
	Replacements int
	Level        Level
	Changed      int   // bytes of the file that were replaced
	Lines        []int // first lines of the replaced spans in the new content, from 1; at most 20
}

// A Report says what Apply did, one Done per edit.
type Report struct{ Edits []Done }

// Apply returns content with edits applied in order, each to the result of the one before. Only matched spans are
// rewritten. Errors are *EditError that name the first edit which fails; content is never changed in place.
func Apply(content []byte, edits []Edit) ([]byte, Report, error) { panic("skeleton") }

// Diff returns unified hunks with 3 lines of context, without file headers, at most maxBytes long, cut at a line with
// `... (diff cut, N more lines)`. whole says that nothing was cut.
func Diff(old, new []byte, maxBytes int) (text string, whole bool) { panic("skeleton") }

// An EditError says which edit failed and why. Err is one of the errors below.
type EditError struct {
	Index int // from 0
	Err   error
}

func (e *EditError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *EditError) Unwrap() error { return e.Err }

// The reasons without further data.
var (
	ErrBinary   = errors.New("binary content")
	ErrEncoding = errors.New("encoding is not supported")
	ErrMix      = errors.New("encoding of the file is unknown, and the new text is not ASCII")
	ErrCascade  = errors.New("old text is part of the new text of an earlier edit")
)

// A NotFoundError says that Old is not there.
type NotFoundError struct {
	Hint string // what may be wrong, with the nearest lines; sentences for the model; "": nothing to say
}

func (e *NotFoundError) Error() string { return "old text not found" }

// An AmbiguousError says that Old is there more than once.
type AmbiguousError struct {
	Count       int
	Lines       []int // of the first 20
	Overlapping bool
	Level       Level
}

func (e *AmbiguousError) Error() string { return "old text is not unique" }

// A CountError says that Expect was not met.
type CountError struct{ Want, Got int }

func (e *CountError) Error() string { return "unexpected number of replacements" }
