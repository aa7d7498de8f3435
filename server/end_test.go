package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"codehand/tools/tool"
)

// endings are when a signal comes after the end of the input, and when what runs is cancelled then.
var endings = []struct{ signal, cancelled time.Duration }{
	{500 * time.Millisecond, signalGrace},
	{signalGrace, signalGrace},
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
			work, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
			cfg := testSettings(t, work, state, nil)
			synctest.Test(t, func(t *testing.T) {
				begun, ended := make(chan struct{}), make(chan time.Time, 1)
				s, err := New(Options{Config: cfg, Version: "test", Tools: []tool.Tool{fixtureTool("hold", reader, func(ctx context.Context, _ tool.Env, _ word) (tool.Result, error) {
					close(begun)
					<-ctx.Done()
					ended <- time.Now()
					return tool.Result{}, ctx.Err()
				})}})
				must(t, err)
				ctx, signal := context.WithCancel(t.Context())
				defer signal()
				inR, inW := io.Pipe()
				done := make(chan error, 1)
				go func() { done <- s.Stdio(ctx, inR, io.Discard) }()
				_, err = io.WriteString(inW, callLine(1, "hold", "{}", "")+"\n")
				must(t, err)
				<-begun
				began := time.Now()
				must(t, inW.Close())
				synctest.Wait()
				defer time.AfterFunc(e.signal, signal).Stop()
				if took := (<-ended).Sub(began); took != e.cancelled {
					t.Errorf("cancelled after %s, want %s", took, e.cancelled)
				}
				must(t, <-done)
				must(t, s.Close())
			})
		})
	}
}

// TestBridgeSignalAfterEndOfInput is the same for the bridge.
func TestBridgeSignalAfterEndOfInput(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		t.Run(fmt.Sprint(e.signal), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := startBridge(t, BridgeOptions{}, bridgeLegacy(bridgeWelcome, func(_ http.ResponseWriter, m bridgePosted) { <-m.ctx.Done() }))
				b.open(bridgeWelcome)
				b.send(bridgePing("5"))
				synctest.Wait()
				began := time.Now()
				must(t, b.in.Close())
				synctest.Wait()
				defer time.AfterFunc(e.signal, b.stop).Stop()
				must(t, <-b.ended)
				if took := time.Since(began); took != e.cancelled {
					t.Errorf("ended after %s, want %s", took, e.cancelled)
				}
			})
		})
	}
}
