package tool

import (
	"errors"
	"fmt"
)

// A Refusal is an error for the model. Any other error is ours or the machine's: the model gets the
// code INTERNAL and a reference, the log gets the error.
type Refusal struct {
	Code   Code
	Number int    // tells apart what one code has in common; 0: it has none. See Numbered
	Text   string // first what is wrong, with the values; then what to do; at most 500 runes before a diff
	Meta   Meta   // like Result.Meta
	// takes the place of Text where not all of that can be shown; what Shows names is unseen then; "": Text is cut
	Brief string
	Shows []string // like Result.Shows: a stale refusal shows content, too
	Cause error    // for the log only
}

// Error returns the first line as the model reads it: the code and the text.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Text }

// Unwrap returns the cause, which only the log sees.
func (r *Refusal) Unwrap() error { return r.Cause }

// Refuse returns a *Refusal as an error.
func Refuse(code Code, format string, args ...any) error {
	return &Refusal{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Numbered is Refuse for a refusal with a number, by which programs tell apart what one code has in common.
func Numbered(code Code, number int, format string, args ...any) error {
	return &Refusal{Code: code, Number: number, Text: fmt.Sprintf(format, args...)}
}

// ErrPending means: the question went out as the answer to this request, and the client will send
// the call again with the person's reply (protocol 2026-07-28). The pipeline passes it up untouched.
var ErrPending = errors.New("waiting for an answer")
