package textedit

import "errors"

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
	ErrEncoding = errors.New("UTF-32 or damaged UTF-16 is not edited")
	ErrMix      = errors.New("new text does not fit the encoding of the file") // a *MixError, if that is known
	ErrNotEmpty = errors.New("old text is empty, and the content is not")
	ErrTooLarge = errors.New("result is larger than 1 GiB")

	// ErrCascade is what a *CascadeError is for errors.Is.
	ErrCascade = errors.New("old text is part of the new text of an earlier edit")
)

// A CascadeError says that Old, without its last line ends, is part of the New of an earlier edit, so that the edit
// might change what was just written.
type CascadeError struct {
	By int // the earlier edit, from 0
}

func (e *CascadeError) Error() string { return ErrCascade.Error() }

// Unwrap returns ErrCascade.
func (e *CascadeError) Unwrap() error { return ErrCascade }

// A MixError says that the file's encoding cannot take what an edit would write.
type MixError struct {
	Encoding Encoding
	// Char is the first character that it has no bytes for. 0: it has, but the bytes beside the change are no character
	// of it and would be read with them.
	Char rune
	// Untold says that it has bytes for Char, but that the encoding, which no mark tells, could not be told afterwards;
	// or, if Char is 0, that what is left would be taken for another encoding.
	Untold bool
}

func (e *MixError) Error() string { return ErrMix.Error() }

// Unwrap returns ErrMix.
func (e *MixError) Unwrap() error { return ErrMix }

// A NotFoundError says that Old is not there.
type NotFoundError struct {
	Hint string // what may be wrong, with the nearest lines; sentences for the model; "": nothing to say

	// ChangedBy is the earlier edit after which Old was gone, counted from 1; 0: no edit did it. From and To are the
	// lines, from 1, where Old was before that edit. If it is set there is no Hint.
	ChangedBy int
	From, To  int

	// Of a Hunk: the line of Under that is missing; else where Old is in the working copy, from 1, Before what it must
	// be behind, or not at the end as it should be. "", 0: neither.
	Under  string
	Line   int
	Before bool
}

func (e *NotFoundError) Error() string { return "old text not found" }

// An AmbiguousError says that Old is there more than once. Lines are of the content that the edit met.
type AmbiguousError struct {
	Count       int   // overlapping ones too
	Lines       []int // of the first 20
	Overlapping bool
	Level       Level
	Under       string // of a Hunk: this line of Under is there more than once as well; "": there is none, or only once

	// Spelling is the first match as the file spells it, at most 200 runes. It differs from Old if Level is not Exact.
	Spelling string
}

func (e *AmbiguousError) Error() string { return "old text is not unique" }

// A CountError says that Expect was not met.
type CountError struct{ Want, Got int }

func (e *CountError) Error() string { return "unexpected number of replacements" }
