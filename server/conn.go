package server

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/stdio"
	"codehand/tools/session"
)

// A conn is one client on a connection of its own, over which all its messages come in order: a pair of pipes, or a
// legacy SSE stream.
type conn struct {
	s      *Server
	at     *place
	key    func(jsonrpc.Envelope) (session.Key, *jsonrpc.Error) // whose call it is
	limits *auth.Limits                                         // of the principal; nil: none
	from   pipeline.From                                        // of every call; its Era is set for each
	gone   func() bool                                          // the client has left, before anybody was told; nil: it cannot be asked
	mute   bool                                                 // legacy clients are put no questions for a person, whatever they declare
	out    *jsonrpc.LineWriter
	table  jsonrpc.InFlight
	crew   *crew
	// replies are the answers that the reading goroutine gives by itself. Another one writes them, so that a client
	// which does not read can still cancel. It ends with replyEnd, and replied says that nothing is left.
	replies           chan []byte
	replyEnd, replied chan struct{}

	legacy  *pipeSession // of all legacy requests
	asks    questions    // likewise
	prompts promptMark
	roots   clientRoots // likewise
	client  atomic.Pointer[clientRecord]
	started atomic.Bool // initialize was answered: untagged notices may be sent
	listens listens
	serial  atomic.Int64 // names the sessions of modern requests
	fanEnd  chan struct{}

	endReplies func() // closes replyEnd, once
}

// newConn registers a connection, which out takes the messages of. The caller sets key, from and what differs, before
// the first message.
func (s *Server) newConn(ctx context.Context, name string, at *place, out *jsonrpc.LineWriter) (*conn, error) {
	c := &conn{
		s: s, at: at, out: out, crew: newCrew(),
		replies: make(chan []byte, jsonrpc.MaxInFlight), replyEnd: make(chan struct{}), replied: make(chan struct{}),
		fanEnd: make(chan struct{}),
	}
	c.endReplies = sync.OnceFunc(func() { close(c.replyEnd) })
	c.legacy = newPipeSession(name+"-"+newID(), broadcastBuffer)
	if err := s.mcp.RegisterSession(ctx, c.legacy); err != nil {
		return nil, err
	}
	go c.fanOut(c.fanEnd)
	go c.reply()
	return c, nil
}

// close ends what newConn began. Nothing is written any more.
func (c *conn) close() {
	close(c.fanEnd)
	c.asks.close()
	c.out.Shut(jsonrpc.ErrClosed) // a reader that was left behind writes nothing any more
	c.endReplies()
	c.crew.dismiss()
	c.s.mcp.UnregisterSession(context.Background(), c.legacy.SessionID())
}

// end takes no more requests, lets calls finish for grace, then cancels them. Open listens get their completion at once.
// What the reading goroutine has answered is written before the end. ctx is that of pipe.serve: a signal makes all that
// shorter, also what comes after end.
func (c *conn) end(ctx context.Context, grace time.Duration) {
	context.AfterFunc(ctx, func() { c.s.hurried.Store(true) }) // until the process ends
	c.asks.close()                                             // no answer can come any more
	drained := c.table.Close()
	c.listens.endAll()
	if !stdio.Finishes(ctx, drained, grace, stdio.SignalGrace) {
		c.table.CancelAll(jsonrpc.ErrClosed)
		stdio.Finishes(ctx, drained, stdio.CancelGrace, stdio.HurriedGrace)
	}
	c.endReplies()
	stdio.Finishes(ctx, c.replied, stdio.SignalGrace, stdio.ReplyGrace)
}

// reply writes what the reading goroutine answers. At the end of the connection it writes what is left.
func (c *conn) reply() {
	defer close(c.replied)
	write := func(line []byte) { _ = c.out.WriteLine(line, 0, nil) } // a write error ends the connection by itself
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
func (c *conn) handle(ctx context.Context, l jsonrpc.Line) {
	if l.Long {
		c.send(jsonrpc.ErrorLine(l.ID, jsonrpc.TooLong().Answer()))
		return
	}
	if len(l.Bytes) == 0 {
		return
	}
	env, bad := jsonrpc.Scan(l.Bytes)
	if bad != nil {
		c.refuse(env, bad)
		return
	}
	c.take(ctx, env, l.Bytes)
}

// take is handle for a message that passed the scan.
func (c *conn) take(ctx context.Context, env jsonrpc.Envelope, msg []byte) {
	switch {
	case env.Method == "" && (env.HasResult || env.HasError):
		c.asks.answer(env.ID, msg) // one that nobody waits for any more is dropped
	case env.IDKind != jsonrpc.IDNone && (env.Method == "" || env.HasResult || env.HasError):
		c.send(jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: "neither a request nor an answer"}))
	case env.IDKind == jsonrpc.IDNone:
		c.notification(ctx, env)
	default:
		c.request(ctx, env, msg)
	}
}

// refuse answers a message that failed the scan. A notification is never answered.
func (c *conn) refuse(env jsonrpc.Envelope, bad *jsonrpc.Fault) {
	switch {
	case env.IDKind == jsonrpc.IDNone:
	case bad.InArguments:
		rec := c.record(env)
		result := c.s.describeError(unusable(env.Name, bad), env.Name)
		c.send(c.s.encode(context.Background(), rec, c.s.decorate(env, result)))
	default:
		c.send(jsonrpc.ErrorLine(env.ID, bad.Answer()))
	}
}

func (c *conn) notification(ctx context.Context, env jsonrpc.Envelope) {
	switch env.Method {
	case noteCancelled:
		if env.RequestID != nil {
			c.table.Cancel(env.RequestID, jsonrpc.ErrCancelled)
		}
	case noteInitialized:
		c.heedRoots(ctx)
	case noteRootsChanged:
		c.roots.changed()
		c.heedRoots(ctx)
	}
}

// request enters a request in the table, takes its ticket, and runs it. Both happen here, on the reading goroutine, so
// a cancel that comes next finds it, and calls pass the gate in the order in which they came.
func (c *conn) request(ctx context.Context, env jsonrpc.Envelope, msg []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	rec := c.record(env)
	f := c.s.flight(rec, cancel)
	f.Lost = func() { rec.lost.Store(true) }
	if err := c.table.Add(f); err != nil {
		cancel(nil)
		c.send(c.full(env, err))
		return
	}
	release := func() {}
	if f.Call || needsSession(env.Method) || rec.listsActive() {
		if e := c.arrive(rec, &release); e != nil {
			c.table.Done(f)
			cancel(nil)
			c.send(jsonrpc.ErrorLine(env.ID, e))
			return
		}
	}
	finish := func() {
		if rec.visit != nil {
			rec.visit.Leave()
			rec.leave()
		}
		release()
		cancel(nil)
		c.table.Done(f)
	}
	if env.Method == string(mcp.MethodInitialize) {
		line := c.perform(ctx, f, rec, msg) // here, since what comes next depends on it
		c.crew.do(func() {
			defer finish()
			_ = c.out.WriteLine(line, 0, func() bool { // in the writer's turn: no broadcast comes before the answer
				ok := f.Settle()
				if ok && rec.hello != nil {
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

// flight begins the flight of a request.
func (s *Server) flight(rec *record, cancel context.CancelCauseFunc) *jsonrpc.Flight {
	env := rec.env
	f := &jsonrpc.Flight{
		ID: env.ID, Call: env.Method == string(mcp.MethodToolsCall), First: env.Method == string(mcp.MethodInitialize), Cancel: cancel,
	}
	if a := s.aim(rec); a != nil {
		f.Orphan = !a.tool.Spec.Traits.ReadOnly
	}
	return f
}

// record begins the record of a request.
func (c *conn) record(env jsonrpc.Envelope) *record {
	rec := &record{env: env, place: c.at, limits: c.limits, client: c.client.Load(), from: c.from, gone: c.gone, prompts: &c.prompts}
	rec.modern, rec.from.Era = env.Modern(), env.Era()
	if !rec.modern {
		rec.roots = &c.roots
		if rec.client != nil && rec.client.HasRoots {
			rec.rootsTo = connRoots{c}
		}
	}
	return rec
}

// arrive finds the session of a call and takes its ticket. Another request only looks at its session.
func (c *conn) arrive(rec *record, release *func()) *jsonrpc.Error {
	key, bad := c.key(rec.env)
	if bad != nil {
		return bad
	}
	switch {
	case rec.listsActive():
		rec.shelf = key
		return nil
	case needsSession(rec.env.Method):
		return c.s.look(rec, key, release)
	}
	if rec.env.Named() && !rec.modern {
		rec.shelf, _ = c.key(rec.env.Unnamed()) // that of an envelope without names has no error
	}
	return c.s.arrive(rec, key, release)
}

// arrive takes the session of a call, its places in its principal's queues, and its ticket, in this order. The caller
// runs release when the call is over.
func (s *Server) arrive(rec *record, key session.Key, release *func()) *jsonrpc.Error {
	if s.aim(rec) == nil {
		return nil // mcp-go answers it; a ticket would hold up nobody, but there is nothing to wait for
	}
	state, end, err := s.sessions.acquire(key, rec.place)
	if err != nil {
		ref := s.report(context.Background(), "session", err, nil)
		return &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"}
	}
	*release = end
	rec.state = state
	// One at a time: over HTTP several calls arrive at once, and one that is first in one queue and second in another
	// would wait for a call that waits for it.
	s.arrival.Lock()
	defer s.arrival.Unlock()
	rec.queue()
	rec.visit = s.pipe.Arrive(state)
	return nil
}

// full answers a request that the table does not take; at the end of the connection, not at all.
func (c *conn) full(env jsonrpc.Envelope, err error) []byte {
	if errors.Is(err, jsonrpc.ErrClosed) {
		return nil
	}
	if errors.Is(err, jsonrpc.ErrIDInUse) {
		return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: err.Error()})
	}
	if env.Method != string(mcp.MethodToolsCall) {
		return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: err.Error()})
	}
	rec := c.record(env)
	return c.s.encode(context.Background(), rec, c.s.decorate(env, c.s.describeError(tooMany(), env.Name)))
}

// perform dispatches a request and returns its answer.
func (c *conn) perform(ctx context.Context, f *jsonrpc.Flight, rec *record, msg []byte) []byte {
	modern := rec.env.Modern()
	listen := modern && rec.env.Method == string(mcp.MethodSubscriptionsListen)
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
	if rec.env.ProgressToken != nil && rec.visit != nil {
		name := ""
		if rec.client != nil && !modern {
			name = rec.client.Name
		}
		t := startTicker(c.s.profile(name).Beat, func(n note) {
			line := progressNotification(rec.env.ProgressToken, n)
			_ = c.out.WriteLine(line, c.out.Patience, f.Waits) // a client that does not read loses notes
		})
		rec.progress = t.set
		rec.flush = sync.OnceFunc(t.stop)
		defer rec.flush()
	}
	if c.started.Load() {
		rec.notify = func(method string, params any) error {
			line, err := jsonrpc.NoticeLine(method, params)
			if err != nil {
				return err
			}
			return c.out.WriteLine(line, 0, f.Waits)
		}
	}
	rec.announce = func(method string) { c.tellListens(notice(method)) }
	if f.Call && !modern && rec.client != nil && rec.client.CanAsk {
		rec.to = &connAsking{c, f}
	}
	began := time.Now()
	answer := c.s.dispatch(ctx, rec, msg)
	if c.s.team != nil {
		version := c.version()
		if modern {
			version = rec.env.Version
		}
		c.s.team.metrics.Request(rec.env.Method, rec.called(), rec.failed, version, c.from.Transport, time.Since(began))
	}
	if rec.hello != nil {
		rec.hello.CanAsk = rec.hello.CanAsk && !c.mute
		c.client.Store(rec.hello)
		c.roots.begin(rec.hello)
	}
	return answer
}

func (c *conn) answer(f *jsonrpc.Flight, line []byte) {
	_ = c.out.WriteLine(line, 0, f.Settle) // a cancelled request gets no answer; a write error ends the connection
}

// send queues an answer of the reading goroutine. When very many wait for a client that does not read, so does it.
func (c *conn) send(line []byte) {
	if line == nil {
		return
	}
	select {
	case c.replies <- line:
	case <-c.out.Failed:
	}
}

// version is the protocol that its client initialized with; "": it has not yet.
func (c *conn) version() string {
	if hello := c.client.Load(); hello != nil {
		return hello.Protocol
	}
	return ""
}

// decorate adds to a result that was made without mcp-go what it would have added in the modern era.
func (s *Server) decorate(env jsonrpc.Envelope, r *mcp.CallToolResult) mcp.JSONRPCResponse {
	if env.Modern() {
		if !wantsInput(r) {
			r.ResultType = mcp.ResultTypeComplete
		}
		r.EnsureResultMeta().SetServerInfo(s.implementation)
	}
	return mcp.JSONRPCResponse{JSONRPC: mcp.JSONRPC_VERSION, Result: r}
}
