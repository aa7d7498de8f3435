package stdio

import (
	"cmp"
	"context"
	"io"

	"codehand/server/jsonrpc"
)

// Serve serves one client until its input ends, ctx ends, writing fails, or the parent process is gone; then it lets
// running calls finish for a while, cancels the rest and returns. Nothing but JSON-RPC lines is written to w. A
// reader that is blocked in in.Read is left behind. The error is that of in, if it is not its end.
func Serve(ctx context.Context, in io.Reader, w io.Writer, o Options, p Pipe) error {
	out := jsonrpc.NewLineWriter(w, cmp.Or(p.Patience, jsonrpc.ProgressPatience))
	o.Caller.From.Auth, o.Caller.From.Transport = "none", "stdio"
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
