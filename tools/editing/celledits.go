package editing

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"codehand/filestate"
	"codehand/tools/notebook"
	"codehand/tools/tool"
	"codehand/tools/viewing"
	"codehand/tools/wording"
)

// A CellEdit changes one cell of a notebook. Unlike a text edit it does not quote what it replaces, so the whole source
// of the cell must have been shown. The outputs need not: running the cell makes them again.
type CellEdit struct {
	Path string            // as asked for
	Cell notebook.CellEdit // what to do
	Done notebook.Report   // what was done; set by Change, like what follows

	book    *viewing.Notebook // before
	was, is filestate.Span
}

// Change returns the new notebook in the encoding of the old one. Errors are those of viewing.ReadNotebook and of
// notebook.Apply.
func (e *CellEdit) Change(old []byte) (content []byte, err error) {
	if old == nil {
		return nil, fs.ErrNotExist
	}
	if e.book, err = viewing.ReadNotebook(e.Path, old); err != nil {
		return nil, err
	}
	content, e.Done, err = notebook.Apply(e.book.JSON, e.Cell)
	if err != nil {
		return nil, err
	}
	after := e.book.With(content)
	e.was, e.is = e.book.Span(e.Done.Source), after.Span(e.Done.New)
	return e.book.Spell(content)
}

// Touches is for filestate.Edit.Touches.
func (e *CellEdit) Touches() (was, is filestate.Span) { return e.was, e.is }

// Unseen refuses an edit of a cell whose source was not shown, or not whole, and says how it can be.
func (e *CellEdit) Unseen(maxLine int) error {
	first, lines := e.book.Lines(e.Done.Source)
	text := fmt.Sprintf("Cell %s of %s was not shown completely, so this edit could lose text that you have not seen. "+
		"Read it with offset=%d and limit=1", e.Done.ID, wording.Clip(e.Path, 200), e.Done.Index+1)
	if viewing.LongLine(lines, maxLine) {
		with := "run_shell and jq"
		if e.book.Wide() {
			with = "run_shell, iconv -f UTF-16 -t UTF-8 and jq"
		}
		return tool.Numbered(tool.FilePartlyRead, 6,
			"%s. If that truncates it, change it with %s: its lines are too long for read_file.", text, with)
	}
	return tool.Numbered(tool.FilePartlyRead, 6,
		"%s or, if that truncates it, its lines with as_text=true, offset=%d and limit=%d.", text, first,
		bytes.Count(lines, []byte("\n"))+1)
}

// IsUnseenCell reports whether filestate refused the edit because the cell was not shown, and not because of a version.
func IsUnseenCell(err error) bool {
	part, ok := errors.AsType[*filestate.PartReadError](err)
	return ok && part.Version == ""
}
