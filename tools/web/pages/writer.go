package pages

import (
	"context"
	"net/url"
	"strings"
	"unicode/utf8"
)

// A writer writes nodes of a page as Markdown.
type writer struct {
	base *url.URL
	out
}

// out builds Markdown from left to right. Nothing that it has written is copied again, however deep a page is nested,
// and what stands before each line is at most maxPrefix long.
type out struct {
	ctx  context.Context
	b    strings.Builder
	full bool // nothing more is written: there is enough, or ctx ended

	prefix  []string // of each line, from the blocks around
	once    string   // stands on the next line in place of prefix[onceAt:]: the marks of items that begin there
	onceAt  int
	pending bool // once is to be written

	lines int      // line ends that are due before the next text
	begun bool     // there is text on this line
	space bool     // a blank is due before the next text
	open  []string // opening signs that are due before the next text
	steps int      // nodes written, for looking at ctx now and then
	place
}

// A place is what the elements around a node mean for it.
type place struct {
	cell   bool // in a cell of a table: a line end is <br>
	flat   int  // in what must stay on one line
	strong int  // in how many such elements it is
	em     int
	link   int
	inList int
	depth  int // of nodes
}

// maxPrefix is the most that stands before a line: blocks nested deeper are written as if they were not.
const maxPrefix = 40

func (w *out) String() string { return strings.TrimSpace(w.b.String()) }

// stop says that nothing more need be written.
func (w *out) stop() bool {
	if w.steps++; w.steps&0x3ff == 0 && w.ctx.Err() != nil || w.b.Len() > maxOutput {
		w.full = true
	}
	return w.full
}

// block ends a block: an empty line comes before the next one.
func (w *out) block() { w.end(2) }

// line ends a line.
func (w *out) line() { w.end(1) }

func (w *out) end(n int) {
	if w.flat > 0 {
		w.space = w.space || w.begun
		return
	}
	w.space = false
	if w.pending { // the mark of an item stands on the line of its first text
		return
	}
	if w.begun || w.lines > 0 {
		w.lines = max(w.lines, n)
	}
	w.begun = false
}

// text writes running text: white space is joined, and stands neither at the beginning nor at the end of a line.
func (w *out) text(s string) {
	for s != "" && !w.full {
		r, size := utf8.DecodeRuneInString(s)
		if isBlank(r) {
			w.space, s = w.begun, s[size:]
			continue
		}
		n := strings.IndexFunc(s, isBlank)
		if n < 0 {
			n = len(s)
		}
		w.literal(s[:n])
		s = s[n:]
	}
}

// isBlank is white space that HTML joins, and the space that does not break.
func isBlank(r rune) bool {
	return r == ' ' || r == '\n' || r == '\t' || r == '\r' || r == '\f' || r == 0xA0
}

// literal writes text of one line as it is, behind what is due.
func (w *out) literal(s string) {
	if s == "" || w.full {
		return
	}
	w.start()
	for _, sign := range w.open {
		w.b.WriteString(sign)
	}
	w.open = w.open[:0]
	if w.cell {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "\n", "<br>")
	}
	w.b.WriteString(s)
}

// start brings the line to where text can stand.
func (w *out) start() {
	switch {
	case !w.begun:
		w.newline()
	case w.space:
		w.b.WriteByte(' ')
	}
	w.begun, w.space = true, false
}

// newline writes the line ends that are due, and the prefix.
func (w *out) newline() {
	if w.cell {
		if w.lines > 0 {
			w.b.WriteString("<br>")
		}
		w.lines = 0
		return
	}
	before := w.prefix
	if w.pending {
		before = w.prefix[:w.onceAt]
	}
	lead := strings.Join(before, "")
	for i := range w.lines {
		if i > 0 {
			w.b.WriteString(strings.TrimRight(lead, " "))
		}
		w.b.WriteByte('\n')
	}
	w.b.WriteString(lead)
	if w.pending {
		w.b.WriteString(w.once)
	}
	w.lines, w.pending, w.once = 0, false, ""
}

// within writes a block whose first line begins with mark, and further lines with rest.
func (w *out) within(mark, rest string, body func()) {
	size := len(rest)
	for _, p := range w.prefix {
		size += len(p)
	}
	if w.cell || w.flat > 0 || size > maxPrefix {
		if mark != rest { // the mark of an item
			w.open = append(w.open, mark)
		}
		n := len(w.open)
		body()
		if mark != rest && len(w.open) == n {
			w.open = w.open[:n-1]
		}
		return
	}
	once, was := w.once, w.pending
	if !was {
		w.onceAt = len(w.prefix)
	}
	w.once, w.pending = once+mark, true
	w.begun = false
	w.prefix = append(w.prefix, rest)
	body()
	w.prefix = w.prefix[:len(w.prefix)-1]
	if w.pending { // it was empty
		w.once, w.pending = once, was
	}
}

// marked writes what has signs before and behind it; without text it has none.
func (w *out) marked(before, behind string, body func()) {
	w.open = append(w.open, before)
	n := len(w.open)
	body()
	switch {
	case len(w.open) >= n:
		w.open = w.open[:n-1]
	case !w.full:
		w.b.WriteString(behind)
	}
}

// verbatim writes lines as they are, each behind the prefix.
func (w *out) verbatim(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		if w.full {
			return
		}
		if line == "" && !w.begun && !w.pending && w.lines > 0 { // no blanks at the end of an empty line
			w.b.WriteByte('\n')
			w.b.WriteString(strings.TrimRight(strings.Join(w.prefix, ""), " "))
		} else {
			w.start()
			w.b.WriteString(line)
		}
		w.begun, w.lines = false, 1
		if w.stop() {
			return
		}
	}
}
