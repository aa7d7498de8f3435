package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/tools/session"
)

const (
	// cancelGrace is how long calls get to end after their contexts did: a command that ignores SIGTERM takes up to 2.5 s,
	// and then its call is recorded.
	cancelGrace = 3 * time.Second
	// hurriedGrace is the same once a signal came behind the end of the input: jobs are ended after the calls, and SIGKILL
	// may come 2 s after the signal. A command that ignores SIGTERM takes 0.5 s then.
	hurriedGrace = time.Second
	// replyGrace is what a client that does not read has then for answers that wait; without a hurry it has signalGrace.
	replyGrace = 100 * time.Millisecond
	// signalGrace is how long running calls get after a signal, the time since the end of the input included; without a
	// signal it is stdio.eof_grace.
	signalGrace = 2 * time.Second
)

// Stdio serves one client until its input ends, ctx ends, writing fails, or the parent process is gone; then it lets
// running calls finish for a while, cancels the rest and returns. Nothing but JSON-RPC lines is written to out. A
// reader that is blocked in in.Read is left behind. The error is that of in, if it is not its end, or *StateError.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	// Every session needs the journal, and a start that fails is better than calls that all do.
	if _, err := s.engines.kept.of(journalOf(s.local.who.ID)); err != nil {
		return &StateError{err}
	}
	c, err := s.newConn(ctx, "stdio", s.local, jsonrpc.NewLineWriter(out, s.patience))
	if err != nil {
		return err
	}
	defer c.close()
	c.from = pipeline.From{Auth: "none", Transport: "stdio"}
	c.key = func(env jsonrpc.Envelope) (session.Key, *jsonrpc.Error) {
		if err := checkHandle(env); err != nil {
			return session.Key{}, &jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: err.Error()}
		}
		return s.stdioKey(env), nil
	}

	// Calls outlive ctx by their grace, so they hang on a context of their own.
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(jsonrpc.ErrClosed)
	ctx, grace, err := pipe{
		grace: s.cfg.Stdio.EOFGrace, watch: s.cfg.Stdio.ParentWatch, failed: c.out.Failed, log: s.log,
		handle: func(l jsonrpc.Line) { c.handle(calls, l) },
		busy:   func() bool { return c.table.Calls() > 0 },
	}.serve(ctx, in)
	c.end(ctx, grace)
	return err
}

// A pipe is one client on standard input and output, as the server and the bridge serve it.
type pipe struct {
	grace  time.Duration      // for what runs after the end of the input
	watch  bool               // the end of the parent process is the end, too
	handle func(jsonrpc.Line) // takes a line, on the reading goroutine
	busy   func() bool        // a call runs
	failed <-chan struct{}    // closed when writing fails
	log    *slog.Logger
}

// serve serves until something ends the connection, and returns how long running calls may go on. A signal that was not the
// first thing to end it ends hurry: a client that sends one after it has closed our input will send SIGKILL next. Lines are
// read and handled on one goroutine of its own, so that a blocked read never keeps a signal waiting.
func (p pipe) serve(ctx context.Context, in io.Reader) (hurry context.Context, grace time.Duration, err error) {
	parent := newParentWatch(p.watch)
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
			p.handle(l)
		}
	}()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return ctx, p.grace, err
		case <-parent.tick():
			if parent.gone(p.busy()) {
				p.log.Warn("the parent process is gone: ending")
				return ctx, 0, nil
			}
		case <-p.failed:
			return ctx, 0, nil
		case <-ctx.Done():
			return context.WithoutCancel(ctx), signalGrace, nil
		}
	}
}
