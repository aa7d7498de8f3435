package viewing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/tools/media"
	"codehand/tools/notebook"
	"codehand/tools/results"
	"codehand/tools/shell"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// HoldsCells says by its name that the file is a notebook, unless it is empty or no text, which is the better answer
// then.
func (s *File) HoldsCells() bool {
	as, err := textedit.Detect(s.Head)
	return (IsNotebook(s.path) || IsNotebook(s.file.Path)) && err == nil && s.from.Size() > int64(as.Mark())
}

// Cells shows cells of a notebook from number first on, as many as are asked for; 0: all that there are.
func (s *File) Cells(ctx context.Context, first, asked int) (tool.Result, error) {
	if s.from.Size() > notebook.MaxBytes {
		return tool.Result{},
			tool.Refuse(tool.TooLarge, "%s is too large (%s). Limit: %d MiB. Use run_shell with jq.", s.path,
				results.Size(s.from.Size()), notebook.MaxBytes>>20)
	}
	as, err := notebookEncoding(s.path, s.Head, s.from.Size())
	if err != nil {
		return tool.Result{}, err
	}
	leave, err := s.env.Media.Hold(ctx, notebookMemory(as, s.from.Size()))
	if err != nil {
		return tool.Result{}, err
	}
	defer func() {
		s.book = nil // or what leave collects would not be the notebook
		leave()
	}()
	raw, err := s.read(notebook.MaxBytes)
	if err != nil {
		return tool.Result{}, err
	}
	if s.book, err = ReadNotebook(s.path, raw); err != nil {
		return tool.Result{}, err
	}
	nb, err := notebook.Parse(s.book.JSON)
	if invalid, ok := errors.AsType[*notebook.InvalidError](err); ok {
		return tool.Result{}, NotebookRefusal(s.path, invalid)
	}
	if err != nil {
		return tool.Result{}, err
	}
	first = max(first, 1)
	switch n := len(nb.Cells); {
	case n == 0:
		return s.answer(ctx,
			view{text: reminder("the notebook has no cells."),
				facts: shownFacts{pieceFacts: &pieceFacts{Unit: "cells", Start: 1}}, fresh: true, quiet: true})
	case first > n:
		return tool.Result{Text: reminder("is shorter than the provided offset (%d). The notebook has %s.", first,
			wording.Plural(n, "cell", "cells"))}, nil
	}
	return s.stackCells(ctx, nb.Cells, first, asked)
}

// stackCells shows what there is room for. All cells are all of the file; else what counts is the cells that are shown.
func (s *File) stackCells(ctx context.Context, cells []notebook.Cell, first, asked int) (tool.Result, error) {
	stack := &results.Stack{Name: "cells", First: first, Asked: asked, Total: len(cells),
		Form: s.room(), Tokens: s.Tokens}
	images := &album{s: s}
	spans := []filestate.Span{{}} // without any, all would count as seen
	var at cut
	for i, c := range cells[first-1:] {
		if asked > 0 && i == asked {
			break
		}
		before := *images
		block, source, err := s.cell(ctx, c, first+i, images)
		if err != nil {
			return tool.Result{}, err
		}
		if !stack.Add(block) {
			*images = before
			break
		}
		at = cutOf(block, source, stack.Cut)
		spans = append(spans, s.book.share(cells, first-1+i, at)...)
	}
	whole := stack.Blocks == len(cells) && at == uncut
	p := view{
		lead: stack.Partial(fmt.Sprintf("offset=%d", stack.Last()+1)), text: stack.String(), media: images.taken,
		notes: stack.Remarks(first > 1 || asked > 0), spans: spans,
		what:  fmt.Sprintf(" (cells %d-%d)", first, stack.Last()),
		facts: shownFacts{pieceFacts: &pieceFacts{"cells", stack.Blocks, first, len(cells), stack.More()}},
	}
	if whole {
		p.spans = nil
	}
	if at != uncut { // which only the first of them can be
		p.notes = append(p.notes, s.book.cutNote(cells[first-1], first, at, s.env.Prefs.ReadMaxLine))
	}
	if s.book.Wide() {
		p.notes = append(p.notes, s.book.as.String(), "BOM")
	}
	return s.answer(ctx, p)
}

// cell is one cell as it is shown, with what it has printed behind the first source bytes. Number counts from 1.
func (s *File) cell(ctx context.Context, c notebook.Cell, number int,
	images *album) (block string, source int, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<cell id=%q type=%q", c.ID, c.Type)
	if c.Count > 0 {
		fmt.Fprintf(&b, " n=\"%d\"", c.Count)
	}
	b.WriteString(">\n")
	if text := c.Source(); text != "" {
		b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
	}
	b.WriteString("</cell>")
	source = b.Len()
	outputs, cut := c.Outputs()
	pictures := 0
	for _, o := range outputs {
		image, long := o.Image()
		switch {
		case long:
			b.WriteString("\n[" + o.MIME + ", over " + results.Size(media.MaxImageBytes) + ", not shown: too large]")
		case len(image) > 0:
			alone := fmt.Sprintf("offset=%d with limit=1 shows it", number)
			if pictures >= s.env.Client.MaxImages {
				alone = "this client accepts " + wording.Plural(s.env.Client.MaxImages, "image", "images") + " at once"
			}
			pictures++
			said, err := images.add(ctx, o.MIME, image, alone)
			if err != nil {
				return "", 0, err
			}
			b.WriteString("\n" + said)
		case o.Text != "":
			b.WriteString("\n" + strings.TrimSuffix(o.Text, "\n"))
		case o.MIME != "":
			b.WriteString("\n[" + o.MIME + " not shown]")
		}
	}
	switch {
	case cut && s.book.Wide(): // which jq does not read
		fmt.Fprintf(&b, "\n[output truncated; use iconv -f UTF-16 -t UTF-8 %s | jq '%s.outputs']", shell.Word(s.path),
			c.Path)
	case cut:
		fmt.Fprintf(&b, "\n[output truncated; use jq '%s.outputs' %s]", c.Path, shell.Word(s.path))
	}
	return b.String(), source, nil
}
