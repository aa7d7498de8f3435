// Package textedit finds text in the bytes of a file and replaces it, changing no other byte.
//
// It works on the raw bytes of UTF-8. A file in another encoding is decoded first; the decoded text knows for each
// position where it is in the file (coded.go), so only the text that an edit writes is encoded again. Old text is
// searched in the bytes, or, where that is not possible, in a view of them: with \n for \r\n and, if needed, straight
// quotes for typographic ones. Each position of a view knows where it is in the file, so only the matched bytes are
// rewritten.
//
// It is pure: no disk, no clock, no goroutine. It knows no files and no tools. Long searches are bounded by an amount
// of work, not by time, so the same input always gives the same answer.
package textedit

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxContent is the largest result in bytes. A short Old that is everywhere, replaced by a long New, could otherwise
// ask for more memory than there is.
const maxContent = 1 << 30

// maxLines is how many places a Done or an AmbiguousError names.
const maxLines = 20

// A Level says how loosely a match was found.
type Level int

// The levels, tried in this order; the next one only if the one before found nothing.
const (
	Exact   Level = iota
	Quotes        // typographic quotes count as straight ones
	Escapes       // \uXXXX, \u{X}, \xNN in Old stand for the character
	Markers       // short forms of markers in Old stand for the long ones; only for an Edit that says so
)

// An Edit replaces Old by New. In both a \r\n is the same as a \n: line ends are written as the file has them.
type Edit struct {
	// Old is what must be there. Empty: the content must be white space only, and New becomes all of it, as it is.
	Old, New string

	All    bool // every occurrence, left to right without overlap
	Expect int  // number of replacements there must be; 0: no expectation; over 1 implies All

	// Prose says that the file holds running text, where a straight quote of New may become a typographic one if Old
	// matched such a one. False is right for source code.
	Prose bool

	Markers bool // try the level of that name, too

	Hunk *Hunk // it is one of a patch, and All and Expect count for nothing; nil: it is not
}

// Done is what one Edit did.
type Done struct {
	Replacements int
	Level        Level
	Changed      int   // bytes of the file that were replaced
	Lines        []int // first lines of the replaced spans in the new content, from 1; at most 20
}

// A Report says what Apply did.
type Report struct {
	Edits  []Done  // one per edit
	Places []Place // where the content was changed, in order; nil: too many, or the file is not in UTF-8
}

// Apply returns content with edits applied in order, each to the result of the one before. Only matched spans are
// rewritten. Content is never changed in place, and without edits it is returned itself. Errors are *EditError that
// name the first edit which fails and wrap ErrBinary, ErrEncoding, ErrMix, ErrNotEmpty, ErrTooLarge, *CascadeError,
// *NotFoundError, *AmbiguousError or *CountError.
func Apply(content []byte, edits []Edit) ([]byte, Report, error) {
	return apply(content, edits, maxContent)
}

// UsedUp says that content has what e writes, and nothing for it to replace.
func UsedUp(content []byte, e Edit) bool {
	_, _, err := Apply(content, []Edit{e})
	_, missing := errors.AsType[*NotFoundError](err)
	return missing && e.New != "" && strings.Contains(foldEnds(Shown(content)), foldEnds(e.New))
}

func apply(content []byte, edits []Edit, limit int) ([]byte, Report, error) {
	if len(edits) == 0 {
		return content, Report{}, nil
	}
	limit = max(limit, len(content))
	c, err := newCopy(content, limit)
	if err != nil {
		return nil, Report{}, &EditError{Index: 0, Err: err}
	}
	return applyCopy(c, edits, limit)
}

// applyCopy makes the file anew from c, with at most limit bytes.
func applyCopy(c *copyOf, edits []Edit, limit int) ([]byte, Report, error) {
	text := c.content
	report := Report{Edits: make([]Done, 0, len(edits))}
	for i, e := range edits {
		done, err := Done{}, error(nil)
		if e.Hunk == nil { // hunks come one behind the other
			err = checkCascade(edits[:i], e)
		}
		if err == nil {
			done, err = c.apply(i, e)
		}
		if missing, ok := errors.AsType[*NotFoundError](err); ok {
			explain(missing, text, c.name, edits[:i], e)
		}
		if err != nil {
			return nil, Report{}, &EditError{Index: i, Err: err}
		}
		report.Edits = append(report.Edits, done)
	}
	c.number(report.Edits)
	if c.coded == nil {
		report.Places = c.trail.places(len(text))
		return c.content, report, nil
	}
	made, err := c.coded.content(c.mark, c.content, limit)
	if err != nil {
		return nil, Report{}, &EditError{Index: len(edits) - 1, Err: err}
	}
	return made, report, nil
}

// A copyOf is the working copy: what the edits so far have made of the content.
type copyOf struct {
	content []byte // UTF-8, or bytes that are taken for it
	limit   int    // bytes that the result may have
	anchors []anchor
	behind  int   // where the last hunk ends
	trail   trail // where content comes from

	name  string // of the encoding
	mark  []byte // that content is without; a UTF-8 mark stays in it
	coded *coded // the way back to the bytes of the file; nil: they are content
}

// newCopy takes the bytes of a file. Those of a UTF-8 file are not looked through: that would cost more than most
// edits.
func newCopy(content []byte, limit int) (*copyOf, error) {
	e, err := Detect(content)
	if err != nil {
		return nil, err
	}
	c := &copyOf{content: content, limit: limit, name: e.String(), trail: newTrail(len(content))}
	if e.set == utf8Set {
		return c, nil
	}
	c.mark = content[:e.Mark()]
	if c.coded, err = newCoded(e.set, content[e.Mark():]); err != nil {
		return nil, err
	}
	c.coded.guessed = e.Mark() == 0
	c.content = c.coded.text
	c.limit = max(limit, len(c.content)) // of its text; what the file may have is seen to in the end
	return c, nil
}

// An anchor remembers where an edit has written, while later edits move it. Anchors are in order of their offset.
type anchor struct {
	edit int
	at   int // offset in the working copy
}

// apply does edit number i, or says why it cannot be done and leaves the copy as it is.
func (c *copyOf) apply(i int, e Edit) (Done, error) {
	if e.Hunk != nil {
		return c.applyHunk(i, e)
	}
	if e.Old == "" {
		return c.fill(i, e)
	}
	if c.coded != nil && !utf8.ValidString(e.Old) {
		return Done{}, &NotFoundError{} // it would match in the middle of a character
	}
	t, ok := find(c.content, e, nil)
	if !ok {
		return Done{}, &NotFoundError{}
	}
	places := t.one()
	if e.All || e.Expect > 1 {
		places = apart(t.view.text, t.needle, t.at)
	} else if twice := t.ambiguous(c.content); twice != nil {
		return Done{}, twice
	}
	if e.Expect > 0 {
		if n := count(places); n != e.Expect {
			return Done{}, &CountError{Want: e.Expect, Got: n}
		}
	}
	if mixes(c.content, t.old, t.add) {
		return Done{}, ErrMix
	}
	return c.replace(i, t, places)
}

// fill makes New the whole content, if nothing but white space is lost. The UTF-8 mark stays.
func (c *copyOf) fill(i int, e Edit) (Done, error) {
	from := len(mark(c.content))
	if len(bytes.TrimSpace(c.content[from:])) > 0 {
		return Done{}, ErrNotEmpty
	}
	if from+len(e.New) > c.limit {
		return Done{}, ErrTooLarge
	}
	done := Done{Replacements: 1, Changed: len(c.content) - from}
	if changed, err := c.note([]splice{{from, len(c.content), []byte(e.New)}}); err != nil {
		return Done{}, err
	} else if c.coded != nil {
		done.Changed = changed
	}
	c.content = slices.Concat(c.content[:from], []byte(e.New))
	for n := range c.anchors {
		c.anchors[n].at = from
	}
	c.anchors = append(c.anchors, anchor{edit: i, at: from})
	return done, nil
}

// note takes down what an edit does to the content. It returns how many bytes of a coded file it takes the place of.
func (c *copyOf) note(splices []splice) (changed int, err error) {
	if c.coded != nil {
		return c.coded.splice(c.content, splices)
	}
	c.trail.follow(len(c.content), splices)
	return 0, nil
}

// number writes the line of every anchor into the Done of its edit.
func (c *copyOf) number(edits []Done) {
	line, counted := 1, 0
	for _, a := range c.anchors {
		line += bytes.Count(c.content[counted:a.at], newline)
		counted = a.at
		edits[a.edit].Lines = append(edits[a.edit].Lines, line)
	}
}

// keep adds the anchors of one edit to those of the edits before it.
func (c *copyOf) keep(added []anchor) {
	c.anchors = append(c.anchors, added...)
	slices.SortStableFunc(c.anchors, func(a, b anchor) int { return cmp.Compare(a.at, b.at) })
}
