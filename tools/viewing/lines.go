package viewing

import (
	"context"
	"fmt"

	"codehand/filestate"
	"codehand/tools/results"
	"codehand/tools/search/page"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// pageLines is how many lines are shown by default.
const pageLines = 2000

// The values of read.line_format; any other, also "", is number, tab, line.
const (
	linesByClient = "auto"
	linesPipe     = "pipe"
	linesBare     = "none"
)

func fill(v *results.View, lines []page.Line) {
	for _, l := range lines {
		if !v.Add(results.Row(l)) {
			break
		}
	}
}

// Lines shows lines of a text from line first on, as many as are asked for; 0: all that there are.
func (s *File) Lines(ctx context.Context, first, asked int) (tool.Result, error) {
	as, err := textedit.Detect(s.Head)
	if err != nil {
		return tool.Result{}, err
	}
	prefs := s.env.Prefs
	v := &results.View{
		First: max(first, 1), Asked: asked, Page: pageLines, Tokens: s.Tokens, Pipe: prefs.ReadLines == linesPipe,
		Bare: prefs.ReadLines == linesBare || prefs.ReadLines == linesByClient && !s.env.Client.Numbers,
		Form: s.room(), BOM: as.Mark() > 0,
	}
	q := page.Query{First: v.First, Lines: asked, MaxLine: prefs.ReadMaxLine, MaxBytes: int64(4 * v.Tokens)}
	if asked == 0 {
		q.Lines = pageLines
	}
	if plain := (textedit.Encoding{}); as.String() != plain.String() {
		v.Encoding, v.Guessed = as.String(), as.Mark() == 0
		q.Encoding = page.Encoding{Mark: as.Mark(), Decode: as.Decode}
		q.Encoding.Unit, q.Encoding.BigEndian = as.Unit()
		v.Wide = q.Encoding.Unit > 1
	}
	found, err := s.env.Search.Page(ctx, s.from, s.from.Stamp(), q)
	if err != nil {
		return tool.Result{}, err
	}
	v.Total, v.AtLeast = found.Total, !found.Exact
	numbered := *v
	fill(v, found.Lines)
	if v.Bare && v.Mistaken() {
		numbered.Bare = false
		v = &numbered
		fill(v, found.Lines)
	}
	facts := v.Facts()
	switch {
	case s.from.Size() == int64(as.Mark()): // at most a mark: has been seen as a whole
		return s.answer(ctx, view{text: reminder("the contents are empty."), facts: shownFacts{Facts: &facts},
			fresh: true, quiet: true})
	case v.Lines == 0 && v.AtLeast:
		return tool.Result{Text: reminder("line %d was not reached within %v; the file has at least %d lines. Use "+
			"run_shell with sed or tail.", v.First, page.MaxTime, v.Total)}, nil
	case v.Lines == 0:
		return tool.Result{Text: reminder("is shorter than the provided offset (%d). The file has %d lines.", v.First,
			v.Total)}, nil
	}
	spans := []filestate.Span{{}} // without any, all would count as seen
	for _, w := range v.Shown {
		spans = append(spans, filestate.Span(w))
	}
	notes, shown := v.Remarks(first > 1 || asked > 0), ""
	if s.HoldsCells() { // and may be shown as such as well
		notes, shown = append(notes, "as_text=true counts lines"), "lines"
	}
	return s.answer(ctx, view{
		lead: v.Partial(), text: v.String(), notes: notes, facts: shownFacts{Facts: &facts},
		spans: spans, what: fmt.Sprintf(" (lines %d-%d)", v.First, v.Last()), form: shown,
	})
}
