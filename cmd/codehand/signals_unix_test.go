//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"
)

// TestSignalBesideHangup: a reload that stands still, on a disk or a terminal, keeps no signal from ending the process.
func TestSignalBesideHangup(t *testing.T) {
	begun, leave := make(chan struct{}), make(chan struct{})
	defer close(leave)
	ctx, stop := withSignals(t.Context(), func() {}, func() bool {
		close(begun)
		<-leave
		return true
	})
	defer func() {
		if code := stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}()
	for _, step := range []struct {
		send syscall.Signal
		wait <-chan struct{}
	}{{syscall.SIGHUP, begun}, {syscall.SIGTERM, ctx.Done()}} {
		if err := syscall.Kill(syscall.Getpid(), step.send); err != nil {
			t.Fatal(err)
		}
		select {
		case <-step.wait:
		case <-time.After(hang):
			t.Fatalf("%s did nothing", step.send)
		}
	}
}
