package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Page is one page of a PDF.
type Page struct {
	Number int    // counted from 1
	Of     int    // pages of the file
	Text   string // laid out as on the page; "": it has none
	Image  *Image // of a page without text; nil if it cannot be made
}

// Limits of a PDF.
const (
	MaxPDFBytes   = 100 << 20
	MaxWholePages = 10 // without a range
	MaxPages      = 20 // of a range
	defaultPDF    = 20 * time.Second
	maxTextBytes  = 8 << 20
	maxPageBytes  = 64 << 20 // of the image of a page
)

// Pages reads the pages from to to of a PDF, counted from 1; both 0: all, if they are few. Pages behind the last are
// left out. It takes at most Options.PDFTime, besides the wait for others, and runs poppler's programs on a copy of the
// file, as the method run says. Errors: *ProgramError, *RangeError, ErrKind, ErrEncrypted, ErrDamaged, ErrSlow, a
// *LimitError, an error of src, or the reason for which ctx ended.
func (r *Reader) Pages(ctx context.Context, src io.ReaderAt, size int64, from, to int) ([]Page, error) {
	if err := checkPDF(src, size); err != nil {
		return nil, err
	}
	if from != 0 && (from < 1 || to < from || to-from >= MaxPages) {
		return nil, &LimitError{What: "pages", Have: int64(to) - int64(from) + 1, Most: MaxPages}
	}
	if _, err := r.program("pdfinfo"); err != nil {
		return nil, err
	}
	if err := r.printing.wait(ctx); err != nil {
		return nil, err
	}
	defer r.printing.leave()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(r.options.PDFTime, defaultPDF), ErrSlow)
	defer cancel()
	d, err := r.newWorkdir(src, size)
	if err != nil {
		return nil, err
	}
	defer d.close()
	return r.pages(ctx, d, from, to)
}

func checkPDF(src io.ReaderAt, size int64) error {
	head := make([]byte, SniffBytes)
	n, err := src.ReadAt(head, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case Sniff(head[:n]) != PDF:
		return ErrKind
	case size > MaxPDFBytes:
		return &LimitError{What: "bytes", Have: size, Most: MaxPDFBytes}
	}
	return nil
}

// pages reads the text of all pages at once, then makes the images that are wanted.
func (r *Reader) pages(ctx context.Context, d *workdir, from, to int) ([]Page, error) {
	count, err := r.count(ctx, d)
	switch {
	case err != nil:
		return nil, err
	case from == 0 && count > MaxWholePages:
		return nil, &LimitError{What: "pages", Have: int64(count), Most: MaxWholePages}
	case from == 0:
		from, to = 1, count
	case from > count:
		return nil, &RangeError{Page: from, Pages: count}
	}
	texts, err := r.texts(ctx, d, from, min(to, count))
	if err != nil {
		return nil, err
	}
	pages := make([]Page, len(texts))
	for i, text := range texts {
		pages[i] = Page{Number: from + i, Of: count, Text: text}
		if strings.TrimSpace(text) != "" {
			continue
		}
		pages[i].Text = ""
		// A page that cannot be drawn leaves the others readable.
		pages[i].Image, err = r.draw(ctx, d, from+i)
		if _, limit := errors.AsType[*LimitError](err); err != nil && !limit && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
	}
	return pages, nil
}

// count asks pdfinfo. The title and its like come before, and may have lines of their own; so the last line counts.
func (r *Reader) count(ctx context.Context, d *workdir) (int, error) {
	said, err := r.run(ctx, d, maxTextBytes, "pdfinfo", input)
	if err != nil {
		return 0, err
	}
	count := 0
	for line := range bytes.Lines(said) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pages:")); ok {
			count, err = strconv.Atoi(string(bytes.TrimSpace(rest)))
		}
	}
	if err != nil || count < 1 {
		return 0, fmt.Errorf("%w: no pages", ErrDamaged)
	}
	return count, nil
}

// texts returns the text of each page. pdftotext ends a page with a form feed, which a font may also claim for a glyph:
// then the pages are read one by one.
func (r *Reader) texts(ctx context.Context, d *workdir, from, to int) ([]string, error) {
	text, err := r.text(ctx, d, from, to)
	if err != nil {
		return nil, err
	}
	texts := strings.Split(strings.TrimSuffix(text, "\f"), "\f")
	if len(texts) == to-from+1 {
		return texts, nil
	}
	texts = texts[:0]
	for n := from; n <= to; n++ {
		if text, err = r.text(ctx, d, n, n); err != nil {
			return nil, err
		}
		texts = append(texts, strings.ReplaceAll(strings.TrimSuffix(text, "\f"), "\f", "\n"))
	}
	return texts, nil
}

func (r *Reader) text(ctx context.Context, d *workdir, from, to int) (string, error) {
	text, err := r.run(ctx, d, maxTextBytes, "pdftotext", "-layout", "-enc", "UTF-8", "-eol", "unix",
		"-f", strconv.Itoa(from), "-l", strconv.Itoa(to), input, "-")
	return strings.ToValidUTF8(string(text), "\uFFFD"), err
}

// draw makes the image of a page, no larger than is shown.
func (r *Reader) draw(ctx context.Context, d *workdir, number int) (*Image, error) {
	n := strconv.Itoa(number)
	// Not larger than usual even if the options allow it: 8,192 by 8,192 pixels would be more than fit takes.
	edge := min(cmp.Or(r.options.Fit.MaxEdge, defaultEdge), defaultEdge)
	data, err := r.run(ctx, d, maxPageBytes, "pdftoppm", "-png", "-f", n, "-l", n, "-scale-to", strconv.Itoa(edge),
		input)
	if err != nil {
		return nil, err
	}
	m, err := r.Fit(ctx, data)
	if err != nil {
		return nil, err
	}
	return &m, nil
}
