// Package pattern reads regular expressions of ripgrep's syntax and finds the lines and places that they match.
//
// A pattern is read into a tree of regexp/syntax (dialect.go). A Program holds the tree compiled twice: Go's regexp
// answers for ASCII lines, and a simulation of all ways to match answers for the rest (threads.go), in linear time.
// Literals that each match needs rule out most lines before either runs (needle.go).
//
// It opens no files and knows no queries.
package pattern

// A Span is a range of bytes of a text, [From, To).
type Span struct{ From, To int }

// An Error says what is wrong with a pattern.
type Error struct {
	Offset int    // byte in the pattern
	Kind   string // syntax, look-around, back-reference, count, class, word-edge, newline, too large; search adds glob
	Text   string // for people and models
}

func (e *Error) Error() string { return e.Text }
