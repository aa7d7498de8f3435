package server

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/config"
	"codehand/server/engines"
	"codehand/server/replaytest"
	"codehand/server/stdio"
	"codehand/tools/tool"
)

// An ending is a server in a bubble, with one call that runs.
type ending struct {
	s      *Server
	in     io.WriteCloser
	signal context.CancelFunc
	done   chan error // what Stdio returned
}

// startEnding returns when the call runs hold.
func startEnding(t *testing.T, cfg config.Config, hold func(context.Context)) *ending {
	t.Helper()
	begun := make(chan struct{})
	s, err := New(Options{Options: engines.Options{Proven: limitsOnly, Config: cfg, Version: "test", Tools: only(fixtureTool("hold", reader, func(ctx context.Context, _ tool.Env, _ word) (tool.Result, error) {
		close(begun)
		hold(ctx)
		return tool.Result{Text: "held"}, ctx.Err()
	}))}})
	must(t, err)
	ctx, signal := context.WithCancel(t.Context())
	t.Cleanup(signal)
	in, w := io.Pipe()
	h := &ending{s: s, in: w, signal: signal, done: make(chan error, 1)}
	go func() { h.done <- s.Stdio(ctx, in, io.Discard) }()
	_, err = io.WriteString(w, replaytest.CallLine(1, "hold", "{}", "")+"\n")
	must(t, err)
	<-begun
	return h
}

// endings are when a signal comes after the end of the input, and when what runs is cancelled then.
var endings = []struct{ signal, cancelled time.Duration }{
	{500 * time.Millisecond, stdio.SignalGrace},
	{stdio.SignalGrace, stdio.SignalGrace},
	{3 * time.Second, 3 * time.Second},
	{time.Hour, 5 * time.Second},
}

// TestSignalAfterEndOfInput: a signal during the grace after the end of the input was not heeded, so a client that closes the
// input, sends SIGTERM 2 s later and SIGKILL 2 s after that left the command of a call running.
func TestSignalAfterEndOfInput(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		t.Run(fmt.Sprint(e.signal), func(t *testing.T) {
			t.Parallel()
			cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), nil)
			synctest.Test(t, func(t *testing.T) {
				ended := make(chan time.Time, 1)
				h := startEnding(t, cfg, func(ctx context.Context) {
					<-ctx.Done()
					ended <- time.Now()
				})
				began := time.Now()
				must(t, h.in.Close())
				synctest.Wait()
				defer time.AfterFunc(e.signal, h.signal).Stop()
				if took := (<-ended).Sub(began); took != e.cancelled {
					t.Errorf("cancelled after %s, want %s", took, e.cancelled)
				}
				must(t, <-h.done)
				synctest.Wait() // the signal is noted by a goroutine of its own
				if got, want := h.s.life.hurried.Load(), e.signal < time.Hour; got != want {
					t.Errorf("commands are ended in a hurry: %t, want %t", got, want)
				}
				must(t, h.s.Close())
			})
		})
	}
}

// TestEndWaitsForKills: a call whose command ignores SIGTERM takes up to 2.5 s to end. The end did not wait so long, and took
// the command away from the call, which failed with an internal error.
func TestEndWaitsForKills(t *testing.T) {
	t.Parallel()
	cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), nil)
	synctest.Test(t, func(t *testing.T) {
		over := false
		h := startEnding(t, cfg, func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(2500 * time.Millisecond)
			over = true
		})
		must(t, h.in.Close())
		must(t, <-h.done)
		if !over {
			t.Error("Stdio has returned before the call")
		}
		must(t, h.s.Close())
	})
}

// TestSignalLeavesTimeForJobs: a call that does not heed its cancel kept a process from ending its jobs before the SIGKILL
// that many clients send 2 s after SIGTERM.
func TestSignalLeavesTimeForJobs(t *testing.T) {
	t.Parallel()
	cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), nil)
	synctest.Test(t, func(t *testing.T) {
		ends := make(chan struct{})
		h := startEnding(t, cfg, func(context.Context) { <-ends })
		must(t, h.in.Close())
		time.Sleep(stdio.SignalGrace)
		h.signal()
		began := time.Now()
		must(t, <-h.done)
		if took := time.Since(began); took != stdio.HurriedGrace {
			t.Errorf("Stdio returned %s after the signal, want %s", took, stdio.HurriedGrace)
		}
		close(ends)
		must(t, h.s.Close())
	})
}

// TestSignalWhileEnding: a signal counts also while what was cancelled ends, and while the server closes after it. The
// first signal does not hurry the end: a second one may never follow.
func TestSignalWhileEnding(t *testing.T) {
	t.Parallel()
	const grace = 5 * time.Second // stdio.eof_grace
	for _, e := range []struct {
		name           string
		eof            bool // the input ends first
		signal, stdio  time.Duration
		during, behind bool // there is a hurry when Stdio has returned, and when the server closes
	}{
		{"while calls end", true, grace + 200*time.Millisecond, grace + stdio.HurriedGrace, true, true},
		{"while the server closes", true, grace + stdio.CancelGrace + 200*time.Millisecond, grace + stdio.CancelGrace, false, true},
		{"first", false, 0, stdio.SignalGrace + stdio.CancelGrace, false, false},
	} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), nil)
			synctest.Test(t, func(t *testing.T) {
				ends := make(chan struct{})
				h := startEnding(t, cfg, func(context.Context) { <-ends })
				began := time.Now()
				if e.eof {
					must(t, h.in.Close())
					synctest.Wait()
				}
				signalled := time.AfterFunc(e.signal, h.signal)
				defer signalled.Stop()
				must(t, <-h.done)
				if took := time.Since(began); took != e.stdio {
					t.Errorf("Stdio returned after %s, want %s", took, e.stdio)
				}
				hurries := func(when string, want bool) {
					synctest.Wait()
					if got := h.s.life.hurried.Load(); got != want {
						t.Errorf("%s commands are ended in a hurry: %t, want %t", when, got, want)
					}
				}
				hurries("then", e.during)
				time.Sleep(time.Second)
				hurries("behind it", e.behind)
				close(ends)
				must(t, h.in.Close())
				must(t, h.s.CloseNow())
				hurries("when it is closed at once", true)
			})
		})
	}
}

// TestCloseWaitsForRecords: the record was closed under calls that had not yet ended, so it had no line of what became of
// them. A call that does not end delays Close only briefly.
func TestCloseWaitsForRecords(t *testing.T) {
	t.Parallel()
	for want, late := range map[string]bool{"serve.start call.done serve.stop": false, "serve.start serve.stop": true} {
		dir := filepath.Join(t.TempDir(), "audit")
		cfg := testSettings(t, t.TempDir(), filepath.Join(t.TempDir(), "state"), map[string]string{"audit.dir": dir})
		synctest.Test(t, func(t *testing.T) {
			ends := make(chan struct{})
			h := startEnding(t, cfg, func(context.Context) { <-ends })
			closed := make(chan error, 1)
			go func() { closed <- h.s.Close() }()
			synctest.Wait() // Close is as far as it gets
			if late {
				time.Sleep(recordGrace)
			} else {
				close(ends)
			}
			must(t, <-closed)
			if late {
				close(ends)
			}
			must(t, h.in.Close())
			must(t, <-h.done)
			if got := replaytest.AuditEvents(t, dir); got != want {
				t.Errorf("recorded are %s, want %s", got, want)
			}
		})
	}
}
