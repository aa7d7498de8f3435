package viewing

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/notebook"
)

// Span is where a range of the JSON is in the file, with the mark before it if it is the beginning. That of none is
// empty.
func (b *Notebook) Span(r notebook.Range) filestate.Span {
	if r.From == r.To {
		return filestate.Span{}
	}
	s := filestate.Span{From: b.at(r.From), To: b.at(r.To)}
	if r.From == 0 {
		s.From = 0
	}
	return s
}

// A cut is where the view of a cell ends.
type cut int

// The cuts.
const (
	uncut     cut = iota
	inOutputs     // behind all of the source
	inSource
)

// cutOf is where the view of a block ends that lacks as many characters at its end. The source ends at that byte.
func cutOf(block string, source, lacks int) cut {
	switch {
	case lacks == 0:
		return uncut
	case lacks <= utf8.RuneCountInString(block[source:]):
		return inOutputs
	}
	return inSource
}

// share is what of the file counts as shown with cell i of all: it, and what is before it, so that all cells together
// are all of the file. Of one whose outputs are cut these are missing. Of one whose source is, it is no more than that
// it begins: something was shown, and the cell not.
func (b *Notebook) share(cells []notebook.Cell, i int, at cut) []filestate.Span {
	r := notebook.Range{To: len(b.JSON)}
	if i > 0 {
		_, r.From = cells[i-1].Span()
	}
	from, to := cells[i].Span()
	if i+1 < len(cells) {
		r.To = to
	}
	switch at {
	case inSource:
		r.To = from + 1
	case inOutputs:
		outputs := cells[i].OutputsRange()
		return []filestate.Span{b.Span(notebook.Range{From: r.From, To: outputs.From}),
			b.Span(notebook.Range{From: outputs.To, To: r.To})}
	}
	return []filestate.Span{b.Span(r)}
}

// cutNote says how what is missing of a cell can be read. Number counts from 1.
func (b *Notebook) cutNote(c notebook.Cell, number int, at cut, maxLine int) string {
	if at == inOutputs {
		return fmt.Sprintf("the outputs of cell %d are truncated; use run_shell with %s", number,
			b.jq(c.Path+".outputs"))
	}
	first, lines := b.Lines(c.SourceRange())
	if LongLine(lines, maxLine) {
		return fmt.Sprintf("cell %d is truncated, and so are its lines in the file; use run_shell with %s", number,
			b.jq(c.Path))
	}
	return fmt.Sprintf("cell %d is truncated; as_text=true shows the file as lines: its source begins at offset=%d",
		number, first)
}

// LongLine says that read_file would not show all of a line.
func LongLine(text []byte, most int) bool {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if most > 0 && utf8.RuneCount(line) > most {
			return true
		}
	}
	return false
}
