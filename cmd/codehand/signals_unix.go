//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// withSignals returns a context that ends at the first signal; a second one ends the process with 128+n. SIGPIPE is
// caught and dropped: a closed pipe must not end the process before its jobs are ended. It is not ignored, because a
// child would inherit that.
func withSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		first := true
		for {
			select {
			case s := <-signals:
				if !first {
					os.Exit(128 + int(s.(syscall.Signal)))
				}
				first = false
				cancel(fmt.Errorf("signal %s", s))
			case <-pipes:
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		close(done)
		cancel(nil)
	}
}
