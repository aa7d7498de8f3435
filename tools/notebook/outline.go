package notebook

import (
	"bytes"
	"strconv"
	"strings"
)

// An outline is where everything is in a notebook.
type outline struct {
	doc          doc
	root         span
	major, minor int
	lists        []list
	cells        []cell
	natives      map[string]int // ids that are in the file, each with the first cell that has it
}

// A list is a list of cells: the only one in nbformat 4, one per worksheet in 3.
type list struct {
	key, span span
	sheet     int
	first     int // the number of its first cell
}

// A cell is where one cell is, and what it is called.
type cell struct {
	span  span
	list  int    // of outline.lists
	id    string // of the file; "": none, or no word
	kind  string
	count int
}

// read checks the content and finds its cells.
func read(content []byte) (*outline, error) {
	if len(content) > MaxBytes {
		return nil, ErrTooLarge
	}
	o := &outline{doc: content, natives: map[string]int{}}
	begin := 0
	if bytes.HasPrefix(content, mark) {
		begin = len(mark)
	}
	if err := check(content, begin); err != nil {
		return nil, err
	}
	o.root = o.doc.value(o.doc.blank(begin))
	if !o.doc.is(o.root, '{') {
		return nil, o.invalid(o.root, "a notebook is an object")
	}
	if err := o.version(); err != nil {
		return nil, err
	}
	if o.major == 4 {
		return o, o.addList(o.root, 0)
	}
	return o, o.sheets()
}

func (o *outline) invalid(v span, reason string) error { return invalid(o.doc, v.from, reason) }

// version reads nbformat and nbformat_minor. Python takes 0 for a minor that is not there.
func (o *outline) version() error {
	major, ok := o.doc.get(o.root, "nbformat")
	if !ok {
		return o.invalid(o.root, "the notebook has no nbformat")
	}
	if o.major, ok = o.doc.whole(major); !ok || o.major != 3 && o.major != 4 {
		return o.invalid(major, "nbformat must be 3 or 4")
	}
	if minor, ok := o.doc.get(o.root, "nbformat_minor"); ok {
		if o.minor, ok = o.doc.whole(minor); !ok || o.minor < 0 {
			return o.invalid(minor, "nbformat_minor must be a number")
		}
	}
	return nil
}

// sheets adds the cells of all worksheets.
func (o *outline) sheets() error {
	sheets, ok := o.doc.get(o.root, "worksheets")
	if !ok || !o.doc.is(sheets, '[') {
		return o.invalid(o.root, "a notebook of nbformat 3 has a list of worksheets")
	}
	n := 0
	for sheet := range o.doc.elements(sheets) {
		if !o.doc.is(sheet, '{') {
			return o.invalid(sheet, "a worksheet is an object")
		}
		if err := o.addList(sheet, n); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return o.invalid(sheets, "the notebook has no worksheet")
	}
	return nil
}

// addList adds the cells of the notebook or worksheet v.
func (o *outline) addList(v span, sheet int) error {
	l := list{sheet: sheet, first: len(o.cells)}
	for m := range o.doc.members(v) {
		if string(o.doc.name(m.key)) == "cells" {
			l.key, l.span = m.key, m.value
		}
	}
	if l.span.to == 0 || !o.doc.is(l.span, '[') {
		return o.invalid(v, "a list of cells is missing")
	}
	if len(o.lists) == maxCells {
		return o.invalid(v, "the notebook has more than 100,000 worksheets")
	}
	o.lists = append(o.lists, l)
	for v := range o.doc.elements(l.span) {
		if !o.doc.is(v, '{') {
			return o.invalid(v, "a cell is an object")
		}
		if len(o.cells) == maxCells {
			return o.invalid(v, "the notebook has more than 100,000 cells")
		}
		o.addCell(v)
	}
	return nil
}

func (o *outline) addCell(v span) {
	c := cell{span: v, list: len(o.lists) - 1}
	for m := range o.doc.members(v) {
		switch string(o.doc.name(m.key)) {
		case "id":
			c.id = o.doc.word(m.value)
		case "cell_type":
			c.kind = o.doc.word(m.value)
		case o.countKey():
			c.count, _ = o.doc.whole(m.value)
		}
	}
	if _, twice := o.natives[c.id]; c.id != "" && !twice {
		o.natives[c.id] = len(o.cells)
	}
	o.cells = append(o.cells, c)
}

// path is where a cell is, for jq.
func (o *outline) path(i int) string {
	l := o.lists[o.cells[i].list]
	path := ".cells[" + strconv.Itoa(i-l.first) + "]"
	if o.major == 3 {
		path = ".worksheets[" + strconv.Itoa(l.sheet) + "]" + path
	}
	return path
}

// prefix begins the name of a cell that is called by its number.
const prefix = "cell-"

// name is what cell i is called.
func (o *outline) name(i int) string {
	if id := o.cells[i].id; id != "" && o.natives[id] == i {
		return id
	}
	return o.numbered(i)
}

// numbered is the name of a cell without an id of its own, which must not be the id of another.
func (o *outline) numbered(i int) string {
	for zeros := ""; ; zeros += "0" {
		name := prefix + zeros + strconv.Itoa(i)
		if _, taken := o.natives[name]; !taken {
			return name
		}
	}
}

// find returns the number of a cell. A cell-N just after the last cell is found as well: it is where one can be added.
func (o *outline) find(name string) (i int, ok bool) {
	if i, ok := o.natives[name]; ok {
		return i, true
	}
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil && i <= len(o.cells)
}

func (o *outline) notFound(name string) error {
	e := &NotFoundError{Cell: name, Native: len(o.natives) > 0}
	for i := range o.cells {
		e.IDs = append(e.IDs, o.name(i))
	}
	return e
}
