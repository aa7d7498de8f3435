package server

import (
	"context"
	"io"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/stdio"
	"codehand/tools/session"
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
	ctx, grace, err := stdio.Pipe{
		Grace: s.cfg.Stdio.EOFGrace, Watch: s.cfg.Stdio.ParentWatch, Failed: c.out.Failed, Log: s.log,
		Handle: func(l jsonrpc.Line) { c.handle(calls, l) },
		Busy:   func() bool { return c.table.Calls() > 0 },
	}.Serve(ctx, in)
	c.end(ctx, grace)
	return err
}
