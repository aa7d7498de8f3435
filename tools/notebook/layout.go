package notebook

import (
	"bytes"
	"strings"
)

const (
	// maxGap is how much white space of the file, in bytes, is repeated in what is written. Every line of a new source
	// repeats it, so a file could ask for any amount.
	maxGap = 64

	// maxIndent is the widest indent, in bytes, that is taken for one.
	maxIndent = 16
)

// gaps are what stands between the members of an object, or the elements of a list.
type gaps struct {
	open string // white space after the bracket
	next string // a comma, and the white space around it
	end  string // white space before the closing bracket
}

// A pattern is how a cell is written.
type pattern struct {
	keys   []string // in order; nil: no cell to take them from
	cells  gaps     // of the list of cells
	object gaps     // of the cell
	colon  string   // between a key and its value
	lines  gaps     // of the source

	language string // nbformat 3: the value of that key, as JSON
}

// empty says whether a list or an object has nothing in it.
func (o *outline) empty(v span) bool { return o.doc.blank(v.from+1) == v.to-1 }

// gap is the white space from from to to, and the comma in it.
func (o *outline) gap(from, to int) string {
	before, after, found := bytes.Cut(o.doc[from:to], []byte(","))
	if !found {
		return short(before)
	}
	return short(before) + "," + short(after)
}

// short is white space of the file, or the last line of it if it is longer than maxGap.
func short(gap []byte) string {
	if len(gap) <= maxGap {
		return string(gap)
	}
	line := gap[max(bytes.LastIndexByte(gap, '\n'), 0):]
	return string(line[:min(len(line), maxGap)])
}

// before is the white space before a value or key, with its line end.
func (o *outline) before(at int) string { return o.gap(o.doc.blankBefore(at), at) }

// gaps reads those of the list or object v; ok: it has at least one entry, so that they are known.
func (o *outline) gaps(v span) (g gaps, ok bool) {
	entries := make([]span, 0, 2)
	if o.doc.is(v, '{') {
		for m := range o.doc.members(v) {
			if entries = append(entries, span{m.key.from, m.value.to}); len(entries) == 2 {
				break
			}
		}
	}
	for e := range o.doc.elements(v) {
		if entries = append(entries, e); len(entries) == 2 {
			break
		}
	}
	if len(entries) == 0 {
		return gaps{}, false
	}
	g.open = o.before(entries[0].from)
	g.end = o.before(v.to - 1)
	switch {
	case len(entries) == 2:
		g.next = o.gap(entries[0].to, entries[1].from)
	case strings.Contains(g.open, "\n"):
		g.next = "," + g.open
	default:
		g.next = o.flat()
	}
	return g, true
}

// flat is the comma between things on one line: as it is at the top of the file, or with a blank as a person writes it.
func (o *outline) flat() string {
	n, end := 0, 0
	for m := range o.doc.members(o.root) {
		if n++; n == 2 {
			if gap := o.gap(end, m.key.from); !strings.Contains(gap, "\n") {
				return gap
			}
			break
		}
		end = m.value.to
	}
	return ", "
}

// indent is what one level is indented by: 1 blank, as Jupyter has it, if the file does not show.
func (o *outline) indent() string {
	open := o.before(o.doc.blank(o.root.from + 1))
	if i := strings.LastIndexByte(open, '\n'); i >= 0 && len(open)-i-1 <= maxIndent {
		return open[i+1:]
	}
	return " "
}

// within are the gaps of a list or object that is itself a line of its own after the white space before, or not.
func (o *outline) within(before string) gaps {
	if !strings.Contains(before, "\n") {
		return gaps{next: o.flat()}
	}
	inner := before + o.indent()
	return gaps{open: inner, next: "," + inner, end: before}
}

// colon is what stands between the first key of v and its value, unless that is too long to repeat.
func (o *outline) colon(v span) (string, bool) {
	for m := range o.doc.members(v) {
		if gap := o.doc[m.key.to:m.value.from]; len(gap) <= maxIndent {
			return string(gap), true
		}
		break
	}
	return "", false
}

// pattern is how a new cell number i in list li is written: like the nearest cell of its type, or else the nearest.
func (o *outline) pattern(i, li int, kind string) pattern {
	l := o.lists[li]
	p := pattern{colon: ": "}
	if colon, ok := o.colon(o.root); ok {
		p.colon = colon
	}
	var known bool
	if p.cells, known = o.gaps(l.span); !known {
		p.cells = o.within(o.before(l.key.from))
	}
	model, same := o.nearest(i, kind)
	if model < 0 {
		p.object = o.within(p.cells.open)
		p.lines = o.within(p.object.open)
		return p
	}
	v := o.cells[model].span
	if p.object, known = o.gaps(v); !known {
		p.object = o.within(o.before(v.from))
	}
	if colon, ok := o.colon(v); ok {
		p.colon = colon
	}
	p.lines = o.within(p.object.open)
	for m := range o.doc.members(v) {
		name := string(o.doc.name(m.key))
		if same && len(p.keys) < maxKeys {
			p.keys = append(p.keys, name)
		}
		switch name {
		case "source", "input":
			if lines, ok := o.gaps(m.value); ok && o.doc.is(m.value, '[') {
				p.lines = lines
			}
		case "language":
			p.language = o.doc.word(m.value)
		}
	}
	return p
}

// nearest is the cell of a type that is nearest to cell i, and before it rather than behind; if there is none, any
// cell.
func (o *outline) nearest(i int, kind string) (model int, same bool) {
	for back, on := i-1, i; back >= 0 || on < len(o.cells); back, on = back-1, on+1 {
		if back >= 0 && o.cells[back].kind == kind {
			return back, true
		}
		if on < len(o.cells) && o.cells[on].kind == kind {
			return on, true
		}
	}
	return min(max(i-1, 0), len(o.cells)-1), false
}
