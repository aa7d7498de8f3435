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
	// CancelGrace is how long calls get to end after their contexts did: a command that ignores SIGTERM takes up to 2.5 s,
	// and then its call is recorded.
	CancelGrace = 3 * time.Second
	// hurriedGrace is the same once a signal came behind the end of the input: jobs are ended after the calls, and SIGKILL
	// may come 2 s after the signal. A command that ignores SIGTERM takes 0.5 s then.
	hurriedGrace = time.Second
	// replyGrace is what a client that does not read has then for answers that wait; without a hurry it has signalGrace.
	replyGrace = 100 * time.Millisecond
	// signalGrace is how long running calls get after a signal, the time since the end of the input included; without a
	// signal it is stdio.eof_grace.
	signalGrace = 2 * time.Second
)

// Serve serves one client until its input ends, ctx ends, writing fails, or the parent process is gone; then it lets running
// calls finish for a while, cancels the rest and returns. Nothing but JSON-RPC lines is written to out. A reader that is
// blocked in in.Read is left behind. The error is that of in, if it is not its end.
func Serve(ctx context.Context, in io.Reader, out *jsonrpc.LineWriter, o Options, p Pipe) error {
	c := NewConn(o, out)
	defer c.Close()
	// Calls outlive ctx by their grace, so they hang on a context of their own.
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(jsonrpc.ErrClosed)
	p.Failed = out.Failed
	p.Handle = func(l jsonrpc.Line) { c.Handle(calls, l) }
	p.Busy = func() bool { return c.Flights.Calls() > 0 }
	ctx, grace, err := p.Serve(ctx, in)
	c.End(ctx, grace)
	return err
}

// A Pipe is one client on standard input and output, as the server and the bridge serve it.
type Pipe struct {
	Grace  time.Duration      // for what runs after the end of the input
	Watch  bool               // the end of the parent process is the end, too
	Handle func(jsonrpc.Line) // takes a line, on the reading goroutine
	Busy   func() bool        // a call runs
	Failed <-chan struct{}    // closed when writing fails
	Log    *slog.Logger
}

// Serve serves until something ends the connection, and returns how long running calls may go on. A signal that was not the
// first thing to end it ends hurry: a client that sends one after it has closed our input will send SIGKILL next. Lines are
// read and handled on one goroutine of its own, so that a blocked read never keeps a signal waiting.
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
			return context.WithoutCancel(ctx), signalGrace, nil
		}
	}
}
