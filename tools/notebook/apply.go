package notebook

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// A Mode says what is done with a cell.
type Mode int

// The modes.
const (
	Replace Mode = iota
	Insert
	Delete
)

// A CellEdit changes one cell.
type CellEdit struct {
	Mode Mode

	// Cell is an id of the file or, if no cell has that, cell-N with N from 0. Insert puts the new cell after it; "":
	// first. Replace of the cell-N that would be next after the last is an Insert at the end.
	Cell string

	// Type is code, markdown or raw. "" on Replace: that of the cell, or code if there is none. Ignored by Delete.
	Type string

	Source string // ignored by Delete

	// Random makes the id of a new cell: 8 hexadecimal digits, and the next ones if a cell has them already. The chance
	// is the caller's, so that the same edit gives the same bytes. Before nbformat 4.5 cells have no ids.
	Random uint32
}

// A Report says what Apply did.
type Report struct {
	Mode  Mode
	Index int    // of the cell that was replaced, inserted or deleted, from 0
	ID    string // its name, as in Cell.ID; that of a new cell is the one that it has now
	After string // Insert: the name of the cell before it; "": it is the first
	Type  string // of the cell, after the edit unless it is gone

	// Dropped are keys of the cell that its new type does not have, and which are lost: outputs, attachments, ...
	Dropped []string
	// Cleared: a code cell was replaced that had outputs, which go with its old source
	Cleared bool

	// of content: the source of the cell that was replaced or deleted, as in Cell.SourceRange; empty if it was inserted
	Source Range
	// of the result: what was written, with the commas and blanks that came with it; empty if it was deleted
	New Range
}

// A Range is the bytes [From, To) of a file.
type Range struct{ From, To int }

// Apply returns content with one cell changed. All bytes outside of that cell, and of the comma that parts it from the
// next, are as before. Content is never changed in place.
//
// Source is stored as a list of lines. A code cell that is replaced loses its outputs and its execution count.
// A cell that changes its type gets and loses the keys that only one of the types has; everything else in it stays.
//
// Errors are ErrTooLarge, ErrType, *InvalidError and *NotFoundError. The result is looked at once more, since a broken
// notebook opens nowhere: what is no JSON is an error of another kind, and a fault of this package.
func Apply(content []byte, edit CellEdit) (result []byte, r Report, err error) {
	if result, r, err = change(content, edit); err != nil {
		return nil, Report{}, err
	}
	// not as an error of what was given
	if bad := check(result, len(result)-len(bytes.TrimPrefix(result, mark))); bad != nil {
		return nil, Report{}, fmt.Errorf("the result is no JSON at %d:%d: %s", bad.Line, bad.Column, bad.Reason)
	}
	return result, r, nil
}

// change is Apply without a look at the result.
func change(content []byte, edit CellEdit) (result []byte, r Report, err error) {
	o, err := read(content)
	if err != nil {
		return nil, Report{}, err
	}
	if !slices.Contains([]string{"", "code", "markdown", "raw"}, edit.Type) {
		return nil, Report{}, ErrType
	}
	at := -1 // Insert as the first
	if edit.Cell != "" || edit.Mode != Insert {
		var ok bool
		if at, ok = o.find(edit.Cell); !ok || at == len(o.cells) && edit.Mode != Replace {
			return nil, Report{}, o.notFound(edit.Cell)
		}
	}
	switch edit.Mode {
	case Delete:
		result, r = o.remove(at)
		return result, r, nil
	case Insert:
		if edit.Type == "" {
			return nil, Report{}, ErrType
		}
		return o.insert(at+1, edit)
	case Replace:
		if at == len(o.cells) {
			edit.Type = cmp.Or(edit.Type, "code")
			return o.insert(at, edit)
		}
		return o.replace(at, edit)
	}
	return nil, Report{}, fmt.Errorf("no such mode: %d", edit.Mode)
}

// splice returns a copy of the file in which text stands for the bytes of s.
func (o *outline) splice(s span, text ...string) ([]byte, error) {
	size := len(o.doc) - (s.to - s.from)
	for _, t := range text {
		size += len(t)
	}
	if size > MaxBytes {
		return nil, ErrTooLarge
	}
	out := append(make([]byte, 0, size), o.doc[:s.from]...)
	for _, t := range text {
		out = append(out, t...)
	}
	return append(out, o.doc[s.to:]...), nil
}

// remove takes cell i out, with the comma before it, or after it if it is the first of its list. So it takes out just
// what insert puts in.
func (o *outline) remove(i int) ([]byte, Report) {
	c := o.cells[i]
	l := o.lists[c.list]
	gone := c.span
	switch {
	case i > l.first:
		gone.from = o.cells[i-1].span.to
	case i+1 < len(o.cells) && o.cells[i+1].list == c.list:
		gone.to = o.cells[i+1].span.from
	default:
		gone = span{l.span.from + 1, l.span.to - 1}
	}
	out, _ := o.splice(gone) // smaller than the file, so never too large
	return out, Report{Mode: Delete, Index: i, ID: o.name(i), Type: c.kind,
		Source: o.doc.source(c.span, o.sourceKey(c.kind))}
}

// insert makes a new cell number i.
func (o *outline) insert(i int, edit CellEdit) ([]byte, Report, error) {
	r := Report{Mode: Insert, Index: i, Type: edit.Type}
	li := 0
	if i > 0 {
		r.After = o.name(i - 1)
		li = o.cells[i-1].list
	}
	l := o.lists[li]
	id := ""
	if o.major == 4 && o.minor >= 5 {
		id = o.newID(edit.Random)
	}
	r.ID = cmp.Or(id, o.numbered(i))
	p := o.pattern(i, li, edit.Type)
	text, err := o.fresh(p, id, edit)
	if err != nil {
		return nil, Report{}, err
	}
	var out []byte
	at := l.span
	switch first := i == l.first; {
	case o.empty(l.span):
		out, err = o.splice(at, "[", p.cells.open, text, p.cells.end, "]")
	case first:
		at = span{o.cells[i].span.from, o.cells[i].span.from}
		out, err = o.splice(at, text, p.cells.next)
	default:
		at = span{o.cells[i-1].span.to, o.cells[i-1].span.to}
		out, err = o.splice(at, p.cells.next, text)
	}
	r.New = o.wrote(at, out)
	return out, r, err
}

// wrote is where in out, made by splice, stands what came for s.
func (o *outline) wrote(s span, out []byte) Range {
	return Range{s.from, s.to + len(out) - len(o.doc)}
}

// newID is an id that no cell has. There are more of them than cells.
func (o *outline) newID(random uint32) string {
	for ; ; random++ {
		id := fmt.Sprintf("%08x", random)
		if _, taken := o.natives[id]; !taken {
			return id
		}
	}
}
