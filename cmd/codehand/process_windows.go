package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// withSignals returns a context that ends at the first interrupt, or when the console closes. A second one runs last,
// and then ends the process. stop ends the context. There is no SIGHUP.
func withSignals(ctx context.Context, last func(), _ func() bool) (_ context.Context, stop func() (code int)) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		last()
		os.Exit(exitFailed)
	}()
	return ctx, func() int { cancel(); return 0 }
}

// claimStdout returns standard output and points os.Stdout at standard error. Windows has no descriptor 1 that a
// library could write to besides os.Stdout.
func claimStdout(f *os.File) (*os.File, error) {
	os.Stdout = os.Stderr
	return f, nil
}

// claimStdin returns standard input as it is.
func claimStdin(in io.Reader) (r io.Reader, restore func()) { return in, func() {} }
