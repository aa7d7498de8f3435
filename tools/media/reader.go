package media

import (
	"context"
	"fmt"
	"time"

	"codehand/tools/sandbox"
)

// Options are the settings of a Reader. The zero value is usable.
type Options struct {
	Fit FitOptions
	// PDFTime is how long one PDF file may take; 0: 20 s.
	PDFTime time.Duration
	// Temp is where the programs for PDF files find their copy of one, each call in a directory of its own that is gone
	// afterwards; made if it is missing. What processes left there that were killed meanwhile is removed by the next
	// New. "": the system's, where nothing is removed.
	Temp string
	// Dirs are the absolute directories of poppler's programs, looked at in this order; nil: those where systems put
	// them.
	Dirs []string
	// Level is how far this machine was proven to confine what it starts; nil: LevelLimits.
	Level func() sandbox.Level
}

// A Reader reads images and PDF files for one server, so that all sessions together have one bound of memory. It
// decodes one image at a time, reads two PDF files at a time, and holds at most 100 MiB of files that must be whole.
// Further calls wait. It is safe for concurrent use.
type Reader struct {
	options  Options
	decoding turns
	printing turns
	holding  *room
}

// maxPrinting is how many PDF files are read at a time.
const maxPrinting = 2

// New makes a Reader. No program is looked for and nothing made before it is needed.
func New(o Options) *Reader {
	if o.Temp != "" {
		sweepWorkdirs(o.Temp)
	}
	if o.Dirs == nil {
		o.Dirs = popplerDirs()
	}
	return &Reader{options: o, decoding: make(turns, 1), printing: make(turns, maxPrinting), holding: newRoom()}
}

// Fit is the function fit with the options of the Reader, after those who came before. An end of ctx ends the wait.
func (r *Reader) Fit(ctx context.Context, data []byte) (Image, error) {
	if err := r.decoding.wait(ctx); err != nil {
		return Image{}, err
	}
	defer r.decoding.leave()
	return fit(ctx, data, r.options.Fit)
}

// Hold waits until there is room for a file of size bytes that is held whole in memory, after those who came before: an
// image before it is decoded, a notebook. The caller forgets the file and then calls leave, once. A file below 1 MiB
// needs no room, and one of more than 100 MiB is alone. An end of ctx ends the wait.
func (r *Reader) Hold(ctx context.Context, size int64) (leave func(), err error) {
	return r.holding.enter(ctx, size)
}

// turns are the places of those who work at the same time. It holds one value for each.
type turns chan struct{}

func (t turns) wait(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turns) leave() { <-t }

// A ProgramError says that a program of this machine is missing.
type ProgramError struct {
	Program string // "pdftotext"
	Package string // that has it, as the system's own package manager calls it
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("%s is not installed (package %s)", e.Program, e.Package)
}

// A RangeError says that the first page that is wanted is behind the last.
type RangeError struct{ Page, Pages int }

func (e *RangeError) Error() string { return fmt.Sprintf("page %d of %d", e.Page, e.Pages) }
