package running

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"codehand/filestate"
	"codehand/tools/search/page"
	"codehand/tools/shell"
	"codehand/tools/workspace"
)

// sight returns what notes that a command which has ended showed lines of a file; nil: it did not. dir is where it ran,
// text what the answer shows of its output. Lines that are not shown as they are do not count: nor do those with CRLF,
// or a last one without an end, since the answer has neither.
func (o *Outcome) sight(c shell.Chunk, dir, text string) func(context.Context) {
	v, ok := shell.ViewOf(c.Info.Command)
	if !ok || c.Info.State != shell.Completed || c.Info.Err > 0 || c.Head != text+"\n" {
		return nil
	}
	if !filepath.IsAbs(v.Path) {
		if dir == "" {
			return nil
		}
		v.Path = filepath.Join(dir, v.Path)
	}
	return func(ctx context.Context) { o.saw(ctx, v, c.Head) }
}

// saw notes that the model has seen these lines where a command looks for them, if they are still there. The disk is
// the witness, not the command, which may be another program of that name. What goes wrong is no fault of the command:
// then the file must be read before it is changed.
func (o *Outcome) saw(ctx context.Context, v shell.View, lines string) {
	f, err := o.Env.Open(v.Path, workspace.Read)
	if err != nil {
		return
	}
	defer f.Close()
	from, err := o.Env.Files.Open(ctx, f)
	if err != nil {
		return
	}
	defer from.Close()
	at, err := o.begin(ctx, v, from, int64(len(lines)))
	if err != nil {
		return
	}
	now := make([]byte, len(lines))
	if _, err := from.ReadAt(now, at); err != nil && !errors.Is(err, io.EOF) || string(now) != lines {
		return
	}
	// In a form of its own, so that read_file, which shows more than this, does not answer that nothing has changed.
	_, _ = from.SawIn(ctx, v.Program, filestate.Span{From: at, To: at + int64(len(now))})
}

// begin is the position of the first of n bytes that a command shows.
func (o *Outcome) begin(ctx context.Context, v shell.View, from *filestate.Reading, n int64) (int64, error) {
	switch v.Program {
	case "tail":
		return max(from.Size()-n, 0), nil
	case "sed":
		found, err := page.Read(ctx, from, from.Size(), page.Query{First: v.First, Lines: 1, MaxLine: 1})
		if err != nil || len(found.Lines) == 0 {
			return from.Size(), err // where nothing is
		}
		return found.Lines[0].From, nil
	}
	return 0, nil
}
