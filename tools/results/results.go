// Package results keeps results that are too long to show, and makes their short form.
//
// The whole text is on disk, closed, before anything is cut. The package also cleans text that programs produced. It
// knows no tools, no sessions and no MCP.
package results

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A Shelf keeps the results of one session in its directory, and counts what calls show together. Each call has a view
// of its own (Arrive). It is safe for concurrent use.
type Shelf struct {
	dir   string
	turns *turns // of the session
	group *group // of the call
}

// New returns the shelf that keeps its files in dir, which is made (0700) when it is first needed. It counts by itself,
// as a call that no other is beside.
func New(dir string) *Shelf { return &Shelf{dir: dir, turns: &turns{}, group: &group{}} }

// Dir returns the directory of the shelf.
func (s *Shelf) Dir() string { return s.dir }

// A Form is what a text must fit into. Zero fields: no such limit. JSON counts the text as JavaScript counts the string
// of JSON that holds it, in UTF-16 units and without the quotes: some clients hand a model their JSON of a result.
type Form struct{ Runes, Bytes, Lines, JSON int }

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
//
// A text that fits, but that the group of its call has no room for, becomes first line and preview.
func (s *Shelf) Bound(_ context.Context, call, tool, text string, f Form) Shown {
	shown := Shown{Text: text, Bytes: int64(len(text)), Lines: countLines(text)}
	if f.Fits(text) && s.group.takes(text) {
		return shown
	}
	path, err := s.keep(call, tool, text)
	where := readOn(path, 0)
	if err != nil {
		where = notKept(cause(err))
	}
	shown.Cut, shown.Path = true, path
	first := tooLarge(shown.Bytes, shown.Lines) + where
	if f.Fits(text) {
		first += noRoom
	}
	shown.Text = s.fit(first, text, f)
	return shown
}

// noRoom ends the first line of what is not too large at all: there is no need to read it in pieces.
const noRoom = " The other results of this turn leave no room for it; called on its own it is shown."

// A Whole is where all of a text lies that is too long to show. Path "": nowhere; the call has to be made again.
type Whole struct {
	Path  string
	Bytes int64
	Lines int
}

// Fit is Bound for a text whose whole lies somewhere already: nothing is written. text may be a short form that names
// it in its first line.
func (s *Shelf) Fit(text string, w Whole, f Form) Shown {
	shown := Shown{Text: text, Path: w.Path, Bytes: w.Bytes, Lines: w.Lines}
	if f.Fits(text) && s.group.takes(text) {
		return shown
	}
	first := tooLarge(w.Bytes, w.Lines) + "It is not shown beside the other results; call the tool again on its own."
	if w.Path != "" {
		first = tooLarge(w.Bytes, w.Lines) + readOn(w.Path, 0)
	}
	body, short := strings.CutPrefix(text, first+"\n")
	if w.Path != "" && !short && f.Fits(text) {
		first += noRoom
	}
	shown.Cut = true
	shown.Text = s.fit(first, body, f)
	return shown
}

// fit makes the short form of text, or its preview if the group has no room for that.
func (s *Shelf) fit(first, text string, f Form) string {
	if !f.Fits(text) {
		if short := f.short(first, cutting{head: text, tail: text, same: true}); s.group.takes(short) {
			return short
		}
	}
	return s.group.preview(first, text, f)
}

// A Spool is a file that holds all of an output.
type Spool struct {
	Path  string
	Bytes int64
	Lines int
	Fault string // why the file does not hold all; "": it does, but for Gap
	Gap   int64  // bytes of the middle that it does not hold
	Ours  bool   // this server wrote it, and what is foreign in it has passed Disown already
}

// Printed is a part of the output as it is shown: Clean of it, or Printed.
func (s Spool) Printed(part string) string {
	if s.Ours {
		return Clean(part)
	}
	return Printed(part)
}

// Link gives a file that does not change any more the name on the shelf that Bound would give it, so that its maker may
// remove the old name. An error means that it keeps only the name that it has: not every file system has links.
func (s *Shelf) Link(call, tool, file string) (path string, err error) {
	return s.place(call, tool, suffix, func(path string) error { return os.Link(file, path) })
}

// Save keeps bytes that are no text, such as an archive that was fetched, beside the texts. They are no Kept.
func (s *Shelf) Save(call, tool string, data []byte) (path string, err error) {
	return s.place(call, tool, saved, func(path string) error { return write(path, data) })
}

// BoundFile is Bound for an output that lies in a file, and that becomes part of a text which is bounded later. head
// and tail are its cleaned ends; tail is empty if head is all of it. What lies between them was not seen, so it is
// counted in bytes. A file that does not hold all is not named.
func (s *Shelf) BoundFile(file Spool, head, tail string, f Form) Shown {
	shown := Shown{Text: head, Bytes: file.Bytes, Lines: file.Lines}
	if tail == "" && f.Fits(head) {
		return shown
	}
	c := cutting{head: head, tail: tail}
	if tail == "" {
		c.tail, c.same = head, true
	} else {
		// Cleaning may have made the ends longer than they are in the file.
		c.between = max(file.Bytes-int64(len(head))-int64(len(tail)), 1)
	}
	shown.Cut, shown.Path = true, file.Path
	where := readOn(file.Path, file.Gap)
	if file.Fault != "" {
		shown.Path, where = "", notKept(file.Fault)
	}
	shown.Text = f.short(tooLarge(file.Bytes, file.Lines)+where, c)
	return shown
}

// readOn says where the output lies, but for gap bytes of its middle.
func readOn(path string, gap int64) string {
	but := ""
	if gap > 0 {
		but = ", but for " + Size(gap) + " of its middle"
	}
	return "Full output" + but + ": " + path + " Read it with read_file offset/limit or grep_search."
}

// FoldedLine is the first line of an output of which lines were left out that what tells of.
func FoldedLine(lines int, what, path string) string {
	return "Output folded (" + Count(lines) + " lines; left out: " + what + "). " + readOn(path, 0)
}

func notKept(cause string) string { return "Full output was not kept: " + cause + "." }

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
	return s.place(call, tool, suffix, func(path string) error { return write(path, text) })
}

// place finds a name that is free and lets put make the file, which must not replace another.
func (s *Shelf) place(call, tool, suffix string, put func(path string) error) (path string, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", err
	}
	if err := s.own(); err != nil {
		return "", err
	}
	base := filepath.Join(s.dir, plain(call)+"-"+plain(tool))
	for i := range attempts {
		path = base + suffix
		if i > 0 {
			path = base + "-" + strconv.Itoa(i+1) + suffix
		}
		if err = put(path); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// own refuses a link in the place of the directory: what lies where it leads is not ours to list, to show or to add to.
func (s *Shelf) own() error {
	info, err := os.Lstat(s.dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: s.dir, Err: syscall.ENOTDIR}
	}
	return err
}

// suffix is how the names of kept texts end.
const suffix = ".txt"

// saved is how the names of what Save keeps end.
const saved = ".bin"

// write makes a file that was not there before. A part of a text is worse than none, so it is removed.
func write[T string | []byte](path string, text T) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
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
