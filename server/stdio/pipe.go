package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"codehand/server/jsonrpc"
)

const (
	// CancelGrace is how long calls get to end after their contexts did: a command that ignores SIGTERM takes up to 2.5
	// s, and then its call is recorded.
	CancelGrace = 3 * time.Second
	// HurriedGrace is the same once a signal came behind the end of the input: jobs are ended after the calls, and
	// SIGKILL may come 2 s after the signal. A command that ignores SIGTERM takes 0.5 s then.
	HurriedGrace = time.Second
	// ReplyGrace is what a client that does not read has then for answers that wait; without a hurry it has
	// SignalGrace.
	ReplyGrace = 100 * time.Millisecond
	// SignalGrace is how long running calls get after a signal, the time since the end of the input included; without a
	// signal it is stdio.eof_grace.
	SignalGrace = 2 * time.Second
)

// A Pipe is one client on standard input and output, as the server and the bridge serve it.
type Pipe struct {
	Grace  time.Duration      // for what runs after the end of the input
	Watch  bool               // the end of the parent process is the end, too
	Handle func(jsonrpc.Line) // takes a line, on the reading goroutine
	Busy   func() bool        // a call runs
	Failed <-chan struct{}    // closed when writing fails
	Log    *slog.Logger
	// Patience is how long a progress notification waits for a client that does not read; 0: as long as is usual.
	Patience time.Duration
}

// Serve serves until something ends the connection, and returns how long running calls may go on. A signal that was not
// the first thing to end it ends hurry: a client that sends one after it has closed our input will send SIGKILL next.
// Lines are read and handled on one goroutine of its own, so that a blocked read never keeps a signal waiting.
func (p Pipe) Serve(ctx context.Context, in io.Reader) (hurry context.Context, grace time.Duration, err error) {
	parent := newParentWatch(p.Watch)
	defer parent.stop()
	ended := make(chan error, 1)
	go func() {
		r := jsonrpc.NewLineReader(in, jsonrpc.MaxMessage)
		for {
			l, err := r.Next()
			if err != nil {
				ended <- err
				return
			}
			parent.message()
			p.Handle(l)
		}
	}()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return ctx, p.Grace, err
		case <-parent.tick():
			if parent.gone(p.Busy()) {
				p.Log.Warn("the parent process is gone: ending")
				return ctx, 0, nil
			}
		case <-p.Failed:
			return ctx, 0, nil
		case <-ctx.Done():
			return context.WithoutCancel(ctx), SignalGrace, nil
		}
	}
}

// Finishes says whether done is closed within grace. Once ctx ends the limit is hurried, counted from the same start:
// many clients close our input, send SIGTERM 2 s later, and SIGKILL 2 s after that.
func Finishes(ctx context.Context, done <-chan struct{}, grace, hurried time.Duration) bool {
	began := time.Now()
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	case <-ctx.Done():
		return Within(done, min(grace, hurried)-time.Since(began))
	}
}

// Within says whether done is closed within d.
func Within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
