package media

import (
	"context"
	"fmt"
	"io"
)

// Options are the settings of a Reader.
type Options struct {
	Fit  FitOptions
	Dirs []string // absolute directories of poppler's programs, looked at in this order; nil: those of the system
}

// A Reader reads images and PDF files for one server, so that its memory is bounded whoever asks: one at a time is
// decoded, and who comes next waits. It is safe for concurrent use.
type Reader struct {
	fit      FitOptions
	decoding chan struct{} // holds one token while an image is decoded
}

// New makes a Reader.
func New(o Options) *Reader {
	return &Reader{fit: o.Fit, decoding: make(chan struct{}, 1)}
}

// Fit is the function Fit with the options of the Reader, after those who came before. An end of ctx ends the wait.
func (r *Reader) Fit(ctx context.Context, data []byte) (Image, error) {
	select {
	case r.decoding <- struct{}{}:
		defer func() { <-r.decoding }()
		return Fit(ctx, data, r.fit)
	case <-ctx.Done():
		return Image{}, context.Cause(ctx)
	}
}

// A Page is one page of a PDF.
type Page struct {
	Number int    // counted from 1
	Text   string // with layout kept; "": the page has none
	Image  *Image // of a page without text
}

// A ProgramError says that a program of this machine is missing.
type ProgramError struct {
	Program string // "pdftotext"
	Package string // that has it: "poppler-utils" of Debian, "poppler" of Homebrew
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("%s is not installed (package %s)", e.Program, e.Package)
}

// Limits of a PDF.
const (
	MaxPDFBytes   = 100 << 20
	MaxWholePages = 10 // without a range
	MaxPages      = 20 // of a range
)

// Pages reads the pages from to to of a PDF, counted from 1; both 0: all. Errors: *ProgramError, ErrKind, ErrEncrypted,
// ErrDamaged, ErrSlow, a *LimitError, or the reason for which ctx ended.
func (r *Reader) Pages(ctx context.Context, src io.ReaderAt, size int64, from, to int) ([]Page, error) {
	head := make([]byte, SniffBytes)
	n, err := src.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case Sniff(head[:n]) != PDF:
		return nil, ErrKind
	case size > MaxPDFBytes:
		return nil, &LimitError{What: "bytes", Have: size, Most: MaxPDFBytes}
	}
	return nil, &ProgramError{Program: "pdfinfo", Package: "poppler-utils"}
}
