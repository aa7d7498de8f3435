package server

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/pipeline"
	"codehand/tools/session"
)

const (
	// cancelGrace is how long calls get to end after their contexts did.
	cancelGrace = 2 * time.Second
	// signalGrace is how long running calls get after a signal; at the end of the input it is stdio.eof_grace.
	signalGrace = 2 * time.Second
)

// Stdio serves one client until its input ends, ctx ends, writing fails, or the parent process is gone; then it lets
// running calls finish for a while, cancels the rest and returns. Nothing but JSON-RPC lines is written to out. A
// reader that is blocked in in.Read is left behind. The error is that of in, if it is not its end.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c, err := s.newConn(ctx, "stdio", s.local, newLineWriter(out, s.patience))
	if err != nil {
		return err
	}
	defer c.close()
	c.from = pipeline.From{Auth: "none", Transport: "stdio"}
	c.key = func(env envelope) (session.Key, *rpcError) {
		if err := checkHandle(env); err != nil {
			return session.Key{}, &rpcError{Code: mcp.INVALID_PARAMS, Message: err.Error()}
		}
		return s.stdioKey(env), nil
	}

	// Calls outlive ctx by their grace, so they hang on a context of their own.
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errConnection)
	grace, err := c.loop(ctx, calls, in)
	c.end(grace)
	return err
}

// loop serves until something ends the connection, and returns how long running calls may go on. Lines are read and
// handled on one goroutine of its own, so that a blocked read never keeps a signal waiting.
func (c *conn) loop(ctx, calls context.Context, in io.Reader) (time.Duration, error) {
	parent := newParentWatch(c.s.cfg.Stdio.ParentWatch)
	defer parent.stop()
	ended := make(chan error, 1)
	go func() {
		r := newLineReader(in, maxMessage)
		for {
			l, err := r.next()
			if err != nil {
				ended <- err
				return
			}
			parent.message()
			c.handle(calls, l)
		}
	}()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return c.s.cfg.Stdio.EOFGrace, err
		case <-parent.tick():
			if parent.gone(c.table.calls() > 0) {
				c.s.log.Warn("the parent process is gone: ending")
				return 0, nil
			}
		case <-c.out.failed:
			return 0, nil
		case <-ctx.Done():
			return signalGrace, nil
		}
	}
}
