package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/tools/tool"
)

const (
	// cancelGrace is how long calls get to end after their contexts did.
	cancelGrace = 2 * time.Second
	// signalGrace is how long running calls get after a signal; at the end of the input it is stdio.eof_grace.
	signalGrace = 2 * time.Second
)

// The causes of a cancel on stdio.
var (
	errClientCancel = errors.New("cancelled by the client")
	errConnection   = errors.New("the connection ends")
)

// A stdioConn is one client on a pair of pipes.
type stdioConn struct {
	s     *Server
	out   *lineWriter
	table inflight
	crew  *crew
	// replies are the answers that the reading goroutine gives by itself. Another one writes them, so that a client
	// which does not read can still cancel. It ends with replyEnd, and replied says that nothing is left.
	replies           chan []byte
	replyEnd, replied chan struct{}

	legacy  *pipeSession // of all legacy requests
	client  atomic.Pointer[clientRecord]
	started atomic.Bool // initialize was answered: untagged notices may be sent
	listens listens
	serial  atomic.Int64 // names the sessions of modern requests
}

// Stdio serves one client until its input ends, ctx ends, writing fails, or the parent process is gone; then it lets
// running calls finish for a while, cancels the rest and returns. Nothing but JSON-RPC lines is written to out. A
// reader that is blocked in in.Read is left behind. The error is that of in, if it is not its end.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &stdioConn{
		s: s, out: newLineWriter(out, s.patience), crew: newCrew(),
		replies: make(chan []byte, maxInFlight), replyEnd: make(chan struct{}), replied: make(chan struct{}),
	}
	c.legacy = newPipeSession("stdio-"+newID(), broadcastBuffer)
	if err := s.mcp.RegisterSession(ctx, c.legacy); err != nil {
		return err
	}
	defer s.mcp.UnregisterSession(context.WithoutCancel(ctx), c.legacy.SessionID())
	defer c.crew.dismiss()
	defer c.out.shut(errConnection) // a reader that was left behind writes nothing any more
	fanEnd := make(chan struct{})
	defer close(fanEnd)
	go c.fanOut(fanEnd)
	go c.reply()

	// Calls outlive ctx by their grace, so they hang on a context of their own.
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errConnection)
	grace, err := c.loop(ctx, calls, in)
	c.end(grace)
	return err
}

// loop serves until something ends the connection, and returns how long running calls may go on. Lines are read and
// handled on one goroutine of its own, so that a blocked read never keeps a signal waiting.
func (c *stdioConn) loop(ctx, calls context.Context, in io.Reader) (time.Duration, error) {
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

// end takes no more requests, lets calls finish for grace, then cancels them. Open listens get their completion at
// once. What the reading goroutine has answered is written before the end.
func (c *stdioConn) end(grace time.Duration) {
	drained := c.table.close()
	c.listens.endAll()
	if !within(drained, grace) {
		c.table.cancelAll(errConnection)
		within(drained, cancelGrace)
	}
	close(c.replyEnd)
	within(c.replied, cancelGrace)
}

// within says whether done is closed within d.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// reply writes what the reading goroutine answers. At the end of the connection it writes what is left.
func (c *stdioConn) reply() {
	defer close(c.replied)
	write := func(line []byte) { _ = c.out.write(line, 0, nil) } // a write error ends the connection by itself
	for {
		select {
		case line := <-c.replies:
			write(line)
		case <-c.replyEnd:
			for {
				select {
				case line := <-c.replies:
					write(line)
				default:
					return
				}
			}
		}
	}
}

// handle takes one line in the order of arrival. What it does itself is fast; a request runs in a goroutine.
func (c *stdioConn) handle(ctx context.Context, l line) {
	if l.long {
		c.send(errorLine(l.id, tooLong().rpc()))
		return
	}
	if len(l.bytes) == 0 {
		return
	}
	env, bad := scanEnvelope(l.bytes)
	switch {
	case bad != nil:
		c.refuse(env, bad)
	case env.method == "" && (env.hasResult || env.hasError):
		// The client's answer to a request of ours. We ask nothing yet.
	case env.idKind != idNone && (env.method == "" || env.hasResult || env.hasError):
		c.send(errorLine(env.id, &rpcError{Code: mcp.INVALID_REQUEST, Message: "neither a request nor an answer"}))
	case env.idKind == idNone:
		c.notification(env)
	default:
		c.request(ctx, env, l.bytes)
	}
}

// refuse answers a message that failed the scan. A notification is never answered.
func (c *stdioConn) refuse(env envelope, bad *envelopeError) {
	switch {
	case env.idKind == idNone:
	case bad.InArguments:
		rec := &record{env: env, client: c.client.Load()}
		result := c.s.describeError(unusable(env.name, bad), env.name)
		c.send(c.s.encode(context.Background(), rec, c.s.decorate(env, result)))
	default:
		c.send(errorLine(env.id, bad.rpc()))
	}
}

func (e *envelopeError) rpc() *rpcError { return &rpcError{Code: e.Code, Message: e.Message} }

func (c *stdioConn) notification(env envelope) {
	if env.method == "notifications/cancelled" && env.requestID != nil {
		c.table.cancelID(env.requestID, errClientCancel)
	}
}

// request enters a request in the table, takes its ticket, and runs it. Both happen here, on the reading goroutine, so
// a cancel that comes next finds it, and calls pass the gate in the order in which they came.
func (c *stdioConn) request(ctx context.Context, env envelope, msg []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &flight{id: env.id, call: env.method == string(mcp.MethodToolsCall), cancel: cancel}
	if err := c.table.add(f); err != nil {
		cancel(nil)
		c.send(c.full(env, err))
		return
	}
	rec := &record{env: env, client: c.client.Load()}
	release := func() {}
	if f.call {
		if e := c.arrive(rec, &release); e != nil {
			c.table.done(f)
			cancel(nil)
			c.send(errorLine(env.id, e))
			return
		}
	}
	finish := func() {
		if rec.visit != nil {
			rec.visit.Leave()
		}
		release()
		cancel(nil)
		c.table.done(f)
	}
	if env.method == string(mcp.MethodInitialize) {
		line := c.perform(ctx, f, rec, msg) // here, since what comes next depends on it
		c.crew.do(func() {
			defer finish()
			_ = c.out.write(line, 0, func() bool { // in the writer's turn: no broadcast comes before the answer
				ok := f.settle()
				if ok && rec.greeted {
					c.started.Store(true)
				}
				return ok
			})
		})
		return
	}
	c.crew.do(func() {
		defer finish()
		c.answer(f, c.perform(ctx, f, rec, msg))
	})
}

// arrive finds the session of a call and takes its ticket.
func (c *stdioConn) arrive(rec *record, release *func()) *rpcError {
	if err := checkHandle(rec.env); err != nil {
		return &rpcError{Code: mcp.INVALID_PARAMS, Message: err.Error()}
	}
	if _, ok := c.s.table[rec.env.name]; !ok {
		return nil // mcp-go answers it; a ticket would hold up nobody, but there is nothing to wait for
	}
	state, end, err := c.s.sessions.acquire(c.s.stdioKey(rec.env))
	if err != nil {
		ref := c.s.report(context.Background(), "session", err, nil)
		return &rpcError{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"}
	}
	*release = end
	rec.state = state
	rec.visit = c.s.pipe.Arrive(state)
	return nil
}

// full answers a request that the table does not take; at the end of the connection, not at all.
func (c *stdioConn) full(env envelope, err error) []byte {
	if errors.Is(err, errConnection) {
		return nil
	}
	if errors.Is(err, errIDInUse) {
		return errorLine(env.id, &rpcError{Code: mcp.INVALID_REQUEST, Message: err.Error()})
	}
	if env.method != string(mcp.MethodToolsCall) {
		return errorLine(env.id, &rpcError{Code: mcp.INTERNAL_ERROR, Message: err.Error()})
	}
	rec := &record{env: env, client: c.client.Load()}
	refusal := tool.Refuse(tool.Busy, "%d calls are in flight on this connection. Nothing was done. Try again when some are answered.", maxInFlight)
	return c.s.encode(context.Background(), rec, c.s.decorate(env, c.s.describeError(refusal, env.name)))
}

// perform dispatches a request and returns its answer.
func (c *stdioConn) perform(ctx context.Context, f *flight, rec *record, msg []byte) []byte {
	modern := rec.env.version >= mcp.ProtocolVersion20260728
	listen := modern && rec.env.method == string(mcp.MethodSubscriptionsListen)
	ps := c.legacy
	if modern {
		// A modern request never changes what a later legacy request sees, so it has a session of its own.
		buffer := 0
		if listen {
			buffer = 1 // the acknowledgement
		}
		ps = newPipeSession("req-"+strconv.FormatInt(c.serial.Add(1), 10), buffer)
	}
	ctx = c.s.mcp.WithContext(ctx, ps)
	ctx = mcpserver.WithSupportedProtocolVersions(ctx, c.s.versions)
	if listen {
		return c.listen(ctx, f, rec, ps, msg)
	}
	if rec.env.progressToken != nil && rec.visit != nil {
		name := ""
		if rec.client != nil && !modern {
			name = rec.client.name
		}
		t := startTicker(c.s.profile(name).Beat, func(n note) {
			line := progressNotification(rec.env.progressToken, n)
			_ = c.out.write(line, c.out.patience, f.waits) // a client that does not read loses notes
		})
		rec.progress = t.set
		rec.flush = sync.OnceFunc(t.stop)
		defer rec.flush()
	}
	answer := c.s.dispatch(ctx, rec, msg)
	if rec.greeted {
		c.initialized(ps)
	}
	return answer
}

func (c *stdioConn) answer(f *flight, line []byte) {
	_ = c.out.write(line, 0, f.settle) // a cancelled request gets no answer; a write error ends the connection
}

// send queues an answer of the reading goroutine. When very many wait for a client that does not read, so does it.
func (c *stdioConn) send(line []byte) {
	if line == nil {
		return
	}
	select {
	case c.replies <- line:
	case <-c.out.failed:
	}
}

// initialized remembers what the client said about itself, for its later legacy requests.
func (c *stdioConn) initialized(ps *pipeSession) {
	info, caps := ps.GetClientInfo(), ps.GetClientCapabilities()
	c.client.Store(&clientRecord{name: info.Name, version: info.Version, canAsk: caps.Elicitation != nil})
	c.s.log.Info("client initialized", "name", clip(info.Name, 80), "version", clip(info.Version, 80))
}

// decorate adds to a result that was made without mcp-go what it would have added in the modern era.
func (s *Server) decorate(env envelope, r *mcp.CallToolResult) mcp.JSONRPCResponse {
	if env.version >= mcp.ProtocolVersion20260728 {
		r.ResultType = mcp.ResultTypeComplete
		r.EnsureResultMeta().SetServerInfo(s.implementation)
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, Result: r}
}

// notificationLine encodes a notification, with the id of a listen in its _meta if it has one.
func notificationLine(n mcp.JSONRPCNotification, subscription json.RawMessage) ([]byte, error) {
	if subscription != nil {
		meta := map[string]any{}
		for k, v := range n.Params.Meta {
			meta[k] = v
		}
		meta[mcp.MetaKeySubscriptionID] = subscription
		n.Params.Meta = meta
	}
	b, err := marshal(n)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(b), '\n'), nil
}
