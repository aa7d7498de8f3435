// Package results keeps what is too long to show, and makes the short form.
//
// The whole text is on disk, closed, before anything is cut. It also owns the cleaning of
// text that programs produced. It knows no tools, no sessions and no MCP.
package results

import "context"

// A Shelf keeps the results of one session in its directory. It is safe for concurrent use.
type Shelf struct {
	// unexported: helper F
}

// New returns the shelf that keeps its files in dir, which is made (0700) when it is first needed.
func New(dir string) *Shelf { panic("skeleton") }

// Dir returns the directory of the shelf.
func (s *Shelf) Dir() string { panic("skeleton") }

// A Form is what a text must fit into. Zero fields: no such limit.
type Form struct{ Runes, Bytes, Lines int }

// A Shown is a text as it is sent.
type Shown struct {
	Text  string
	Path  string // of the file that holds the whole; "": nothing was cut, or it could not be kept
	Bytes int64  // of the whole
	Lines int    // of the whole
	Cut   bool
}

// Bound returns text as it is if it fits; else it writes the whole to <dir>/<call>-<tool>.txt, closes it, and returns
// first line (size, path), head, marker, tail. If the whole cannot be kept, the first line says so; that is no error.
func (s *Shelf) Bound(ctx context.Context, call, tool, text string, f Form) Shown { panic("skeleton") }

// BoundFile is Bound for a whole that already lies in a file of size bytes (a spool): head and tail are given, nothing is written.
func (s *Shelf) BoundFile(path string, size int64, lines int, head, tail string, f Form) Shown {
	panic("skeleton")
}

// Clean makes text of a program safe to show: valid UTF-8, escape sequences and controls removed, progress lines
// collapsed, invisible characters shown as escapes. It is pure.
func Clean(text string) string { panic("skeleton") }

// Show makes text of a file safe to show: valid UTF-8, every control and invisible character shown as an escape
// (`\x1b`, `\u202e`). n counts the escapes. It is pure.
func Show(text string) (shown string, n int) { panic("skeleton") }
