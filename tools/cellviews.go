package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"codehand/filestate"
	"codehand/tools/notebook"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// holdsCells says by its name that the file is a notebook, unless it is empty or no text, which is the better answer then.
func (s *showing) holdsCells() bool {
	as, err := textedit.Detect(s.head)
	return (isNotebook(s.path) || isNotebook(s.file.Path)) && err == nil && s.from.Size() > int64(as.Mark())
}

// cells shows cells of a notebook from number first on, as many as are asked for; 0: all that there are.
func (s *showing) cells(ctx context.Context, first, asked int) (tool.Result, error) {
	if s.from.Size() > notebook.MaxBytes {
		return tool.Result{}, tool.Refuse(tool.TooLarge, "%s is too large (%s). Limit: 100 MiB. Use run_shell with jq.", s.path, results.Size(s.from.Size()))
	}
	raw, err := s.read(notebook.MaxBytes)
	if err != nil {
		return tool.Result{}, err
	}
	nb, err := notebook.Parse(raw)
	if invalid, ok := errors.AsType[*notebook.InvalidError](err); ok {
		return tool.Result{}, notebookRefusal(s.path, invalid)
	}
	if err != nil {
		return tool.Result{}, err
	}
	first = max(first, 1)
	switch n := len(nb.Cells); {
	case n == 0:
		return s.answer(ctx, sheet{text: reminder("the notebook has no cells."), facts: shownFacts{pieceFacts: &pieceFacts{Unit: "cells", Start: 1}}, fresh: true, quiet: true})
	case first > n:
		return tool.Result{Text: reminder("is shorter than the provided offset (%d). The notebook has %s.", first, plural(n, "cell", "cells"))}, nil
	}
	return s.stackCells(ctx, nb.Cells, first, asked)
}

// stackCells shows what there is room for. All cells are all of the file; else what counts is the cells that are shown.
func (s *showing) stackCells(ctx context.Context, cells []notebook.Cell, first, asked int) (tool.Result, error) {
	stack := &results.Stack{Name: "cells", First: first, Asked: asked, Total: len(cells), Form: form(s.env, 500, 2), Tokens: s.tokens}
	images := &album{s: s}
	spans := []filestate.Span{{}} // without any, all would count as seen
	for i, c := range cells[first-1:] {
		if asked > 0 && i == asked {
			break
		}
		before := *images
		block, err := s.cell(ctx, c, first+i, images)
		if err != nil {
			return tool.Result{}, err
		}
		if !stack.Add(block) {
			*images = before
			break
		}
		if from, to := c.Span(); stack.Cut == 0 {
			spans = append(spans, filestate.Span{From: int64(from), To: int64(to)})
		}
	}
	whole := stack.Blocks == len(cells) && stack.Cut == 0
	p := sheet{
		lead: stack.Partial(fmt.Sprintf("offset=%d", stack.Last()+1)), text: stack.String(), media: images.taken,
		notes: stack.Remarks(first > 1 || asked > 0), spans: spans, what: fmt.Sprintf(" (cells %d-%d)", first, stack.Last()),
		facts: shownFacts{pieceFacts: &pieceFacts{"cells", stack.Blocks, first, len(cells), stack.More()}},
	}
	if whole {
		p.spans = nil
	}
	return s.answer(ctx, p)
}

// cell is one cell as it is shown, with what it has printed. Number counts from 1.
func (s *showing) cell(ctx context.Context, c notebook.Cell, number int, images *album) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "<cell id=%q type=%q", c.ID, c.Type)
	if c.Count > 0 {
		fmt.Fprintf(&b, " n=\"%d\"", c.Count)
	}
	b.WriteString(">\n")
	if source := c.Source(); source != "" {
		b.WriteString(strings.TrimSuffix(source, "\n") + "\n")
	}
	b.WriteString("</cell>")
	outputs, cut := c.Outputs()
	pictures := 0
	for _, o := range outputs {
		switch {
		case len(o.Image) > 0:
			alone := fmt.Sprintf("offset=%d with limit=1 shows it", number)
			if pictures >= s.env.Client.MaxImages {
				alone = "this client takes " + plural(s.env.Client.MaxImages, "image", "images") + " at once"
			}
			pictures++
			said, err := images.add(ctx, o.MIME, o.Image, alone)
			if err != nil {
				return "", err
			}
			b.WriteString("\n" + said)
		case o.Text != "":
			b.WriteString("\n" + strings.TrimSuffix(o.Text, "\n"))
		case o.MIME != "":
			b.WriteString("\n[" + o.MIME + " not shown]")
		}
	}
	if cut {
		fmt.Fprintf(&b, "\n[output cut; use jq '%s.outputs' %s]", c.Path, s.path)
	}
	return b.String(), nil
}
