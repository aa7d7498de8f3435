package bridge

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/stdio"
)

// Options of a bridge.
type Options struct {
	URL         string            // of the endpoint, as a person types it: https://host/mcp
	Session     string            // handle of the conversation, 8-64 of [A-Za-z0-9._-]; "": a random one
	Token       func() string     // bearer token; asked for each request, by any goroutine; nil or "": none
	TokenFrom   string            // where the token comes from, as an operator is told when it is refused
	Insecure    bool              // a token may be sent over http:// to another machine
	CAs         *x509.CertPool    // whom to trust; nil: the system's; not used with Base
	Base        http.RoundTripper // nil: one of its own, which honours the proxy variables
	EOFGrace    time.Duration     // how long running requests may go on after the end of the input
	ParentWatch bool              // end when the parent process is gone
	Version     string            // of this program

	// Refuse makes the line of the tool result that refuses a call, in the words of the server. bad says what is wrong
	// with its arguments; nil: too many calls are in flight. Required; called by any goroutine.
	Refuse func(env jsonrpc.Envelope, bad *jsonrpc.Fault) []byte
	Log    *slog.Logger // nil: nothing is logged
}

// Check says what is wrong with the options, as Run does before it reads anything: the URL, the handle, or a token
// that would go over the network in clear.
func (o Options) Check() error {
	_, err := newRemote(o.whole())
	return err
}

// whole fills in what may be left out.
func (o Options) whole() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Session == "" {
		o.Session = newHandle()
	}
	return o
}

// newHandle returns a handle that cannot be guessed and never repeats.
func newHandle() string { return strings.ToLower(rand.Text()) }

// A bridge is one client on a pair of pipes, and the endpoint that it talks to.
type bridge struct {
	o Options
	*order
	remote   *remote
	out      *jsonrpc.LineWriter
	table    jsonrpc.InFlight
	sessions *sessions
	ctx      context.Context // of everything that runs; ends when the bridge does
	streams  sync.WaitGroup  // the GET stream

	keepsCalls atomic.Bool            // the endpoint answers a repeated call with what the first one did
	version    atomic.Pointer[string] // of the newest modern request; nil: none came
}

// Run serves one client on a pair of pipes by passing its messages to a remote endpoint, and what comes from there
// back, until the input ends, ctx ends, writing fails, or the parent process is gone; then it lets running requests
// finish for a while and ends the session at the endpoint. A reader that is blocked in in.Read is left behind. The
// error is that of the options, or that of in, if it is not its end.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	o = o.whole()
	p, err := newRemote(o)
	if err != nil {
		return err
	}
	if o.Base == nil {
		defer p.client.CloseIdleConnections()
	}
	// What runs outlives ctx by its grace.
	running, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(jsonrpc.ErrClosed)
	b := &bridge{o: o, remote: p, out: jsonrpc.NewLineWriter(out, jsonrpc.ProgressPatience), ctx: running,
		sessions: newSessions()}
	b.order = newOrder(b.out.Failed)
	defer b.out.Shut(jsonrpc.ErrClosed) // a reader that was left behind writes nothing any more
	ctx, grace, err := stdio.Pipe{
		Grace: o.EOFGrace, Watch: o.ParentWatch, Failed: b.out.Failed, Log: o.Log,
		Handle: b.handle, Busy: func() bool { return b.table.Calls() > 0 },
	}.Serve(ctx, in)
	b.end(ctx, grace, stop)
	return err
}

// end takes no more messages, lets what runs finish for grace, which a signal that ends ctx makes shorter, then stops
// it. Open listens get their completion at once.
func (b *bridge) end(ctx context.Context, grace time.Duration, stop context.CancelCauseFunc) {
	for _, r := range b.order.close() {
		if r.listen() {
			r.stop(jsonrpc.ErrClosed)
		}
	}
	b.table.Close()
	done := make(chan struct{})
	go func() {
		b.work.Wait()
		close(done)
	}()
	finished := stdio.Finishes(ctx, done, grace, stdio.SignalGrace)
	if !finished {
		b.table.CancelAll(jsonrpc.ErrClosed)
	}
	b.sessions.closeStream()
	b.leave()
	stop(jsonrpc.ErrClosed)
	if !finished {
		stdio.Within(done, stdio.CancelGrace)
	}
	gone := make(chan struct{})
	go func() {
		b.streams.Wait()
		close(gone)
	}()
	stdio.Within(gone, stdio.CancelGrace)
}

// handle takes one line in the order of arrival. It waits for nothing but a client that does not read.
func (b *bridge) handle(l jsonrpc.Line) {
	if l.Long {
		b.say(jsonrpc.ErrorLine(l.ID, jsonrpc.TooLong().Answer()))
		return
	}
	if len(l.Bytes) == 0 {
		return
	}
	env, bad := jsonrpc.Scan(l.Bytes)
	switch {
	case bad != nil:
		b.say(b.o.refusal(env, bad))
	case env.Method == "" && (env.HasResult || env.HasError):
		b.reply(env, l.Bytes)
	case env.IDKind != jsonrpc.IDNone && (env.Method == "" || env.HasResult || env.HasError):
		b.say(jsonrpc.ErrorLine(env.ID,
			&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "neither a request nor an answer"}))
	case env.IDKind == jsonrpc.IDNone:
		b.notification(env, l.Bytes)
	default:
		if env.Version >= mcp.ProtocolVersion20260728 {
			b.version.Store(&env.Version)
		}
		b.request(env, l.Bytes)
	}
}

// refusal answers a message that failed the scan. A notification is never answered.
func (o Options) refusal(env jsonrpc.Envelope, bad *jsonrpc.Fault) []byte {
	switch {
	case env.IDKind == jsonrpc.IDNone:
		return nil
	case bad.InArguments:
		return o.Refuse(env, bad)
	}
	return jsonrpc.ErrorLine(env.ID, bad.Answer())
}

// full answers a request that the table does not take; at the end of the connection, not at all.
func (o Options) full(env jsonrpc.Envelope, err error) []byte {
	switch {
	case errors.Is(err, jsonrpc.ErrClosed):
		return nil
	case errors.Is(err, jsonrpc.ErrIDInUse):
		return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()})
	case env.Method != string(mcp.MethodToolsCall):
		return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
	}
	return o.Refuse(env, nil)
}

// say writes a line of the bridge's own, without keeping the reading goroutine.
func (b *bridge) say(line []byte) {
	if line == nil {
		return
	}
	b.aside(func() { _ = b.out.WriteLine(line, 0, nil) }) // a write error ends the connection by itself
}

// reply passes on the client's answer to a request of the endpoint. Only sessions have any.
func (b *bridge) reply(env jsonrpc.Envelope, msg []byte) {
	b.post(env, msg, "", func(err error) {
		if err != nil {
			b.o.Log.Warn("an answer did not reach the endpoint", "host", b.remote.url.Host, "err", err)
		}
	})
}

// notification passes on a notification of the client. A cancel of what is not running goes no further: some clients
// cancel every finished call.
func (b *bridge) notification(env jsonrpc.Envelope, msg []byte) {
	switch mcp.MCPMethod(env.Method) {
	case mcp.MethodNotificationCancelled:
		if r := b.find(env.RequestID); r != nil && r.Waits() && r.env.Method != string(mcp.MethodInitialize) {
			b.table.Cancel(env.RequestID, jsonrpc.ErrCancelled)
			if r.Cancelled() {
				b.abandon(r, env, msg)
			}
		}
		return
	case mcp.MethodNotificationInitialized:
		b.greet(env, msg)
		return
	}
	version := env.Version
	if v := b.version.Load(); version == "" && v != nil && b.sessions.current().hello == nil {
		version = *v
	}
	b.post(env, msg, version, func(err error) {
		if err != nil {
			b.o.Log.Warn("a notification did not reach the endpoint", "host", b.remote.url.Host, "method", env.Method,
				"err", err)
		}
	})
}
