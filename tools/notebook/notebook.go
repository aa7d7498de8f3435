package notebook

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the largest notebook that is read, and the largest that Apply makes.
const MaxBytes = 100 << 20

// maxCells is how many cells a notebook may have. A person does not scroll through more, and each costs memory.
const maxCells = 100_000

// maxWord is how long, in characters, an id or a type may be. nbformat 4.5 allows ids of 64.
const maxWord = 64

// A Notebook is what a file holds, for showing.
type Notebook struct {
	Major, Minor int // nbformat: 3 or 4, and what is after the dot
	Cells        []Cell
}

// A Cell is one cell. Its source and outputs are read from the content that Parse got when they are asked for.
type Cell struct {
	// ID is what Apply finds the cell by: its id in the file or, if that has none, is no plain word, or is also the id
	// of an earlier cell, cell-N with N from 0. Such a name that is the id of another cell gets zeros before N.
	ID string

	Type  string // code, markdown, raw, or another plain word as it is in the file; "": none
	Count int    // of its last execution; 0: none

	// Path is where the cell is in the file, in the words of jq: .cells[3]
	Path string

	doc  doc
	span span
	key  string // of the source
}

// Parse reads a notebook. The content must not be changed as long as the notebook is used. Errors are ErrTooLarge and
// *InvalidError.
func Parse(content []byte) (Notebook, error) {
	o, err := read(content)
	if err != nil {
		return Notebook{}, err
	}
	nb := Notebook{Major: o.major, Minor: o.minor, Cells: make([]Cell, 0, len(o.cells))}
	for i, c := range o.cells {
		nb.Cells = append(nb.Cells, Cell{
			ID: o.name(i), Type: c.kind, Count: c.count, Path: o.path(i), doc: o.doc, span: c.span,
			key: o.sourceKey(c.kind),
		})
	}
	return nb, nil
}

// Span returns the bytes [from, to) of the content that the cell takes, its outputs among them.
func (c Cell) Span() (from, to int) { return c.span.from, c.span.to }

// SourceRange is where the value is that Source reads; the first byte of the cell if it has none.
func (c Cell) SourceRange() Range { return c.doc.source(c.span, c.key) }

// OutputsRange is where the value is that Outputs reads; empty, at the end of the cell, if it has none.
func (c Cell) OutputsRange() Range {
	if v, ok := c.doc.get(c.span, "outputs"); ok {
		return Range{v.from, v.to}
	}
	return Range{c.span.to, c.span.to}
}

// source is where the source of the cell v is, which is under key; the first byte of the cell if it has none.
func (d doc) source(v span, key string) Range {
	if source, ok := d.get(v, key); ok {
		return Range{source.from, source.to}
	}
	return Range{v.from, v.from + 1}
}

// Source is the text of the cell. A source that is neither a string nor a list of strings is "".
func (c Cell) Source() string {
	source, ok := c.doc.get(c.span, c.key)
	if !ok {
		return ""
	}
	text, _ := c.doc.appendLines(nil, source, MaxBytes)
	return string(text)
}

// word is what the string v says if that is plain.
func (d doc) word(v span) string {
	if !d.is(v, '"') {
		return ""
	}
	text, whole := d.appendText(nil, v, maxWord*utf8.UTFMax)
	if !whole {
		return ""
	}
	return printable(text)
}

// printable is text if that is plain, and else "": short, and without blanks and what quotes or markup is made of. Ids
// and types are shown between quotes, where a file must not be able to end them.
func printable(text []byte) string {
	if len(text) > maxWord*utf8.UTFMax || utf8.RuneCount(text) > maxWord {
		return ""
	}
	for _, r := range string(text) {
		if !unicode.IsPrint(r) || strings.ContainsRune(" \"'<>&\ufffd", r) {
			return ""
		}
	}
	return string(text)
}

// whole is the number v if it is a whole one that fits, like 4 or 4.0. Anything else is 0 and false.
func (d doc) whole(v span) (n int, ok bool) {
	if v.to-v.from > 20 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(d.bytes(v)), 64)
	if n = int(f); err != nil || float64(n) != f {
		return 0, false
	}
	return n, true
}
