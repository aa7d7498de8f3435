package main

import (
	"context"
	"io"
)

// input is standard input until its end or that of ctx, whose cause it then fails with: a signal only ends ctx, and
// a read that blocks for ever would not notice it. Such a read stays behind until the process ends, so t.in must not be
// read afterwards. Called at most once.
func (t *terminal) input(ctx context.Context) io.Reader {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(context.Cause(ctx)) }) // it always returns nil
	go func() {
		_, err := io.Copy(w, t.in)
		_ = w.CloseWithError(err) // likewise; the first error stays
	}()
	return r
}
