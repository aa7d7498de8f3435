// Package results keeps what is too long to show, and makes the short form.
//
// The whole text is on disk, closed, before anything is cut. It also owns the cleaning of
// text that programs produced. It knows no tools, no sessions and no MCP.
package results

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Shelf keeps the results of one session in its directory. It is safe for concurrent use.
type Shelf struct {
	dir string
}

// New returns the shelf that keeps its files in dir, which is made (0700) when it is first needed.
func New(dir string) *Shelf { return &Shelf{dir: dir} }

// Dir returns the directory of the shelf.
func (s *Shelf) Dir() string { return s.dir }

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
// The whole is also kept for a call that was cancelled, because its partial output is sent, too.
func (s *Shelf) Bound(_ context.Context, call, tool, text string, f Form) Shown {
	shown := Shown{Text: text, Bytes: int64(len(text)), Lines: countLines(text)}
	if f.fits(text) {
		return shown
	}
	path, err := s.keep(call, tool, text)
	where := readOn(path)
	if err != nil {
		where = "Full output was not kept: " + cause(err) + "."
	}
	shown.Cut, shown.Path = true, path
	shown.Text = f.short(tooLarge(shown.Bytes, shown.Lines)+where, cutting{head: text, tail: text, same: true})
	return shown
}

// BoundFile is Bound for a whole that already lies in a file of size bytes (a spool): nothing is written. head and
// tail are its cleaned ends; tail is empty if head is all of it. What lies between them was not seen, so it is counted
// in bytes.
func (s *Shelf) BoundFile(path string, size int64, lines int, head, tail string, f Form) Shown {
	shown := Shown{Text: head, Bytes: size, Lines: lines}
	if tail == "" && f.fits(head) {
		return shown
	}
	c := cutting{head: head, tail: tail}
	if tail == "" {
		c.tail, c.same = head, true
	} else {
		// Cleaning may have made the ends longer than they are in the file.
		c.between = max(size-int64(len(head))-int64(len(tail)), 1)
	}
	shown.Cut, shown.Path = true, path
	shown.Text = f.short(tooLarge(size, lines)+readOn(path), c)
	return shown
}

func readOn(path string) string {
	return "Full output: " + path + " Read it with read_file offset/limit or grep_search."
}

func tooLarge(size int64, lines int) string {
	unit := " lines). "
	if lines == 1 {
		unit = " line). "
	}
	return "Output too large (" + Size(size) + ", " + Count(lines) + unit
}

// attempts is how many names keep tries: a call has one result, but a retry of the client may come with the same id.
const attempts = 10

// keep writes text to a new file and returns its path.
func (s *Shelf) keep(call, tool, text string) (path string, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	base := filepath.Join(s.dir, plain(call)+"-"+plain(tool))
	for i := range attempts {
		path = base + ".txt"
		if i > 0 {
			path = base + "-" + strconv.Itoa(i+1) + ".txt"
		}
		if err = write(path, text); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// write makes a file that was not there before. A part of a text is worse than none, so it is removed.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path) // the text says already that nothing was kept
	}
	return err
}

// maxName bounds each part of a file name: names of mounted tools come from strangers.
const maxName = 100

// plain makes a part of a file name from s.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), maxName)]
}

// cause is what the system said, without the path: "no space left on device".
func cause(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err.Error()
}
