package main

import (
	"context"
	"io"
	"os"
	"os/signal"
)

// withSignals returns a context that ends at the first interrupt; a second one ends the process.
func withSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	return ctx, stop
}

// claimStdout returns standard output and points os.Stdout at standard error. Windows has no descriptor 1 that a
// library could write to besides os.Stdout.
func claimStdout(f *os.File) (*os.File, error) {
	os.Stdout = os.Stderr
	return f, nil
}

// claimStdin returns standard input as it is.
func claimStdin(in io.Reader) (r io.Reader, restore func()) { return in, func() {} }
