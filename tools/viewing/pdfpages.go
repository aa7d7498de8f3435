package viewing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codehand/filestate"
	"codehand/tools/media"
	"codehand/tools/results"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// PageRange reads 3 or 1-5; "" is 0-0, all pages. ok: there are at most media.MaxPages.
func PageRange(pages string) (from, to int, ok bool) {
	if pages == "" {
		return 0, 0, true
	}
	first, last, isRange := strings.Cut(pages, "-")
	if !isRange {
		last = first
	}
	a, err1 := strconv.ParseUint(first, 10, 31)
	b, err2 := strconv.ParseUint(last, 10, 31)
	return int(a), int(b), err1 == nil && err2 == nil && a > 0 && b >= a && b-a < media.MaxPages
}

// Pages shows pages of a PDF: those that are asked for, or all of a short one.
func (s *File) Pages(ctx context.Context, asked string) (tool.Result, error) {
	if why := s.env.Prefs.NoPDF; why != "" {
		return tool.Result{},
			tool.Refuse(tool.PDFUnavailable, "PDF files cannot be read: %s. Ask the user for the text of %s.", why,
				s.path)
	}
	from, to, _ := PageRange(asked)
	pages, err := s.env.Media.Pages(ctx, s.from, s.from.Size(), from, to)
	if behind, ok := errors.AsType[*media.RangeError](err); ok {
		return tool.Result{Text: reminder("has no page %d. The PDF has %s.", behind.Page,
			wording.Plural(behind.Pages, "page", "pages"))}, nil
	}
	if err != nil {
		return tool.Result{}, s.pageRefusal(err)
	}
	first, last, total := pages[0].Number, pages[len(pages)-1].Number, pages[0].Of
	stack := &results.Stack{Name: "pages", First: first, Total: total, Asked: len(pages),
		Form: s.room(), Tokens: s.Tokens}
	images := &album{s: s}
	for _, p := range pages {
		before := *images
		if !stack.Add(s.page(p, images)) {
			*images = before
			break
		}
	}
	p := view{
		text: stack.String(), media: images.taken, notes: stack.Remarks(asked != ""),
		lead:  stack.Partial(fmt.Sprintf("pages=\"%d-%d\"", stack.Last()+1, last)),
		facts: shownFacts{pieceFacts: &pieceFacts{"pages", stack.Blocks, first, total, stack.More()}},
		what:  " (all pages)",
	}
	if stack.Blocks < total || stack.Cut > 0 {
		p.spans, p.fresh = []filestate.Span{{}}, true // which bytes make a page is not known
	}
	return s.answer(ctx, p)
}

// page is one page as it is shown: its text, or what it looks like.
func (s *File) page(p media.Page, images *album) string {
	block := fmt.Sprintf("--- page %d ---", p.Number)
	switch text := strings.TrimRight(p.Text, " \t\r\n\f"); {
	case text != "":
		block += "\n" + text
	case p.Image != nil && s.env.Client.MaxImages == 0:
		block += "\n[no text; its image is not shown: this client does not accept images]"
	case p.Image != nil:
		block += "\n" + images.put(*p.Image, fmt.Sprintf("pages=%d shows it", p.Number))
	default:
		block += "\n[no text]"
	}
	return block
}

// pageRefusal puts into words why a PDF is not shown.
func (s *File) pageRefusal(err error) error {
	limit, isLimit := errors.AsType[*media.LimitError](err)
	absent, isAbsent := errors.AsType[*media.ProgramError](err)
	switch {
	case isAbsent:
		return tool.Refuse(tool.PDFUnavailable,
			"PDF files need the program %s, which this server does not have. The operator can install the package %s.",
			absent.Program, absent.Package)
	case errors.Is(err, media.ErrEncrypted):
		return tool.Refuse(tool.PDFEncrypted,
			"%s needs a password, so its pages cannot be read. Ask the user for a copy without one.", s.path)
	case isLimit && limit.What == "pages" && limit.Have > 0:
		return tool.Refuse(tool.TooLarge,
			"The PDF has %s pages. Give pages, at most %d.", results.Count(int(limit.Have)), media.MaxPages)
	case isLimit && limit.What == "bytes":
		return s.limitRefusal(limit, "Split it with run_shell.")
	case isLimit:
		return s.limitRefusal(limit, "Give fewer pages.")
	case errors.Is(err, media.ErrSlow):
		return tool.Refuse(tool.TooLarge, "%s takes too long to read. Give fewer pages.", s.path)
	case errors.Is(err, media.ErrKind), errors.Is(err, media.ErrDamaged):
		return tool.Refuse(tool.PDFDamaged,
			"%s is damaged and cannot be read as a PDF. Use run_shell with file, or ask the user for another copy.",
			s.path)
	}
	return err
}
