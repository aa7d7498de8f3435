//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// withSignals returns a context that ends at the first signal. A second one runs last, which ends what must not be left
// behind, and then the process with 128+n; a third does not wait for it. stop gives the signals back, and returns the
// exit code that a second one demands, 0 if none came. SIGHUP counts only if hup says false; no other waits for hup.
// SIGPIPE is caught and dropped: a closed pipe must not end the process before its jobs are ended. It is not ignored,
// because a child would inherit that.
func withSignals(ctx context.Context, last func(), hup func() bool) (_ context.Context, stop func() (code int)) {
	ctx, cancel := context.WithCancelCause(ctx)
	// what finds no room is dropped: three are all that count
	signals, hangups := make(chan os.Signal, 3), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(hangups, syscall.SIGHUP)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	done := make(chan struct{})
	var second atomic.Int64
	go func() {
		for s := range hangups {
			if !hup() {
				signals <- s
			}
		}
	}()
	go func() {
		n := 0
		for {
			select {
			case s := <-signals:
				code := 128 + int(s.(syscall.Signal))
				switch n++; n {
				case 1:
					cancel(fmt.Errorf("signal %s", s))
				case 2:
					second.Store(int64(code))
					go func() {
						last()
						os.Exit(code)
					}()
				default:
					os.Exit(code)
				}
			case <-pipes:
			case <-done:
				return
			}
		}
	}()
	return ctx, func() int {
		signal.Stop(signals)
		signal.Stop(hangups)
		close(hangups) // nothing is sent to it any more
		signal.Stop(pipes)
		close(done)
		cancel(nil)
		return int(second.Load())
	}
}
