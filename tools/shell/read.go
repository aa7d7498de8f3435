package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// Read lets read have the output of a job from its beginning, with a line in place of what was not kept. It runs once,
// in the caller's goroutine; while it does, the output of a running job waits, so it must be quick and must not call
// the Shell. ErrUnknown: no such job here; then it does not run. Its own error comes back as it is.
func (s *Shell) Read(ctx context.Context, id string, read func(io.Reader) error) (Info, error) {
	j, i, err := s.find(ctx, id)
	if err != nil {
		return i, err
	}
	if j == nil {
		f, k, err := s.openLog(i)
		if err != nil {
			return i, err
		}
		defer func() { _ = f.Close() }() // only read
		return i, read(k.reader(f))
	}
	info := j.Info()
	o := j.output
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := os.Open(o.path)
	if err != nil {
		return info, fmt.Errorf("%w: its output is gone", ErrUnknown)
	}
	defer func() { _ = f.Close() }() // only read
	return info, read(o.layout().reader(f))
}

// reader reads all that is kept. A log that was closed up has the line in place of the gap already.
func (k kept) reader(f *os.File) io.Reader {
	if k.head == k.tail {
		return part{0, k.size}.in(f)
	}
	if k.shift != 0 {
		return part{0, k.size - k.shift}.in(f)
	}
	return io.MultiReader(part{0, k.head}.in(f), strings.NewReader(gapLine(k.tail-k.head)),
		part{k.tail, k.size - k.tail}.in(f))
}

// gapLine stands for bytes that were not kept.
func gapLine(n int64) string { return fmt.Sprintf("\n[... %d bytes of output were not kept ...]\n", n) }
