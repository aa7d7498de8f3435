package tools

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/notebook"
	"codehand/tools/tool"
)

// A bookEdit changes one cell of a notebook. Since nothing in it proves that the caller knows what it replaces, the source of
// the cell must have been shown. What the cell printed need not have been: running it again makes that anew.
type bookEdit struct {
	path string
	cell notebook.CellEdit
	done notebook.Report // set by change, like what follows

	book    *book // before
	was, is filestate.Span
}

// change makes the new notebook, whatever it is spelled in. Errors are those of readBook and of notebook.Apply.
func (e *bookEdit) change(old []byte) (content []byte, err error) {
	if old == nil {
		return nil, fs.ErrNotExist
	}
	if e.book, err = readBook(e.path, old); err != nil {
		return nil, err
	}
	content, e.done, err = notebook.Apply(e.book.json, e.cell)
	if err != nil {
		return nil, err
	}
	after := &book{json: content, as: e.book.as}
	e.was, e.is = e.book.span(e.done.Source), after.span(e.done.New)
	return e.book.spell(content)
}

// touches is that of filestate.Edit.
func (e *bookEdit) touches() (was, is filestate.Span) { return e.was, e.is }

// span is where a range of the JSON is in the file, with the mark before it if it is the beginning. That of none is empty.
func (b *book) span(r notebook.Range) filestate.Span {
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

// share is what of the file counts as shown with cell i of all: it, and what is before it, so that all cells together are all
// of the file. Of one whose outputs are cut these are missing. Of one whose source is, it is no more than that it begins:
// something was shown, and the cell not.
func (b *book) share(cells []notebook.Cell, i int, at cut) []filestate.Span {
	r := notebook.Range{To: len(b.json)}
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
		return []filestate.Span{b.span(notebook.Range{From: r.From, To: outputs.From}), b.span(notebook.Range{From: outputs.To, To: r.To})}
	}
	return []filestate.Span{b.span(r)}
}

// cutNote says how what is missing of a cell can be read. Number counts from 1.
func (b *book) cutNote(c notebook.Cell, number int, at cut, maxLine int) string {
	if at == inOutputs {
		return fmt.Sprintf("the outputs of cell %d are cut; use run_shell with %s", number, b.jq(c.Path+".outputs"))
	}
	first, lines := b.lines(c.SourceRange())
	if longLine(lines, maxLine) {
		return fmt.Sprintf("cell %d is cut, and so are its lines in the file; use run_shell with %s", number, b.jq(c.Path))
	}
	return fmt.Sprintf("cell %d is cut; as_text=true shows the file in lines, from offset=%d on those of its source", number, first)
}

// unseen refuses an edit of a cell whose source was not shown, or not whole, and says how it can be.
func (e *bookEdit) unseen(maxLine int) error {
	first, lines := e.book.lines(e.done.Source)
	text := fmt.Sprintf("Cell %s of %s was not shown whole, and what was not would be lost unseen. Read it with offset=%d and limit=1", e.done.ID, clip(e.path, 200), e.done.Index+1)
	if longLine(lines, maxLine) {
		with := "run_shell and jq"
		if e.book.wide() {
			with = "run_shell, iconv -f UTF-16 -t UTF-8 and jq"
		}
		return tool.Numbered(tool.FilePartlyRead, 6, "%s. Where that cuts it, change it with %s: its lines are too long for read_file.", text, with)
	}
	return tool.Numbered(tool.FilePartlyRead, 6, "%s or, where that cuts it, its lines with as_text=true, offset=%d and limit=%d.", text, first, bytes.Count(lines, []byte("\n"))+1)
}

// longLine says that read_file would not show all of a line.
func longLine(text []byte, most int) bool {
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if most > 0 && utf8.RuneCount(line) > most {
			return true
		}
	}
	return false
}

// isUnseenCell tells such a refusal of the ledger from one about the version of a part.
func isUnseenCell(err error) bool {
	part, ok := errors.AsType[*filestate.PartReadError](err)
	return ok && part.Version == ""
}
