// Package pattern reads regular expressions of ripgrep's syntax and finds the lines and places that they match.
//
// A pattern is read into a tree of regexp/syntax (dialect.go) and compiled to instructions over sets of runes
// (code.go). An automaton that is made while it runs says which lines of a buffer match (automaton.go): it reads
// bytes, at four places of the buffer in turns (lanes.go), and its table is bounded. Where a match is in its line,
// and all that multiline mode shows, is left to a simulation of all ways to match (threads.go), in linear time, on
// texts that are known to match. Literals that each match needs rule out most lines before either runs
// (needle.go).
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
