package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The methods that a connection itself must know.
const (
	methodInitialize = "initialize"
	methodCall       = "tools/call"
	methodListen     = "subscriptions/listen"
	methodListRoots  = "roots/list"
	methodAsk        = "elicitation/create"
	methodPing       = "ping"

	noteCancelled    = "notifications/cancelled"
	noteInitialized  = "notifications/initialized"
	noteRootsChanged = "notifications/roots/list_changed"
	noteProgress     = "notifications/progress"
)

// Server is what a connection needs of the server.
type Server struct {
	Serve  request.Serve
	Refuse func(env jsonrpc.Envelope, modern bool, err error) request.Answer // answers a call that never begins
	// Unusable makes the error for arguments of a call that the model wrote and no parser should guess about.
	Unusable func(name string, bad *jsonrpc.Fault) error
	// Follow begins to send a client what answers no request.
	Follow func(key session.Key, peer request.Peer) (stop func())
	// Hurry says that the process may be killed soon.
	Hurry     func()
	RootsTime time.Duration // that a client has to name its roots
	// Reopens says whether a client of this name opens a transport session for each call; nil: none does.
	Reopens func(client string) bool
}

// Options of a Conn.
type Options struct {
	Server
	Tenant *tenants.Tenant
	Key    func(jsonrpc.Envelope) (session.Key, error) // whose request it is; the error is for the client
	Caller request.Caller                              // its Era is set for each request
	Gone   <-chan struct{}                             // closed when the client has left; nil: when writing fails
	// Doubted: not every client of this kind that declares elicitation answers questions. Before the first one it must
	// answer a ping, and after one that it left open until its time was over it is put no more.
	Doubted bool
	Links   bool // the client's roots are looked at through links: it started this process
}

// A Conn is one client on a connection of its own, over which all its messages come in order: a pair of pipes, or a
// legacy SSE stream. One goroutine hands it messages.
type Conn struct {
	Flights jsonrpc.InFlight
	Out     *jsonrpc.LineWriter

	o       Options
	tenant  atomic.Pointer[tenants.Tenant]
	workers *workers
	asks    jsonrpc.Outgoing
	// replies are the answers that the reading goroutine gives by itself. Another one writes them, so that a client
	// which does not read can still cancel. It ends with replyEnd, and replied says that nothing is left.
	replies           chan []byte
	replyEnd, replied chan struct{}
	endReplies        func() // closes replyEnd, once
	endFollow         func()

	legacy              // of all legacy requests
	answers answering   // of a Doubted client
	started atomic.Bool // initialize was answered: untagged notices may be sent
}

// legacy is what a connection knows of its client.
type legacy struct {
	client  atomic.Pointer[sessions.ClientRecord]
	prompts sessions.PromptMark
	roots   tenants.ClientRoots
}

// NewConn begins a connection, whose messages leave through out. The caller runs Close.
func NewConn(o Options, out *jsonrpc.LineWriter) *Conn {
	c := &Conn{
		o: o, Out: out, workers: newWorkers(),
		replies: make(chan []byte, jsonrpc.MaxInFlight), replyEnd: make(chan struct{}), replied: make(chan struct{}),
	}
	if o.Gone == nil {
		c.o.Gone = out.Failed
	}
	c.roots.FollowLinks = o.Links
	c.tenant.Store(o.Tenant)
	c.endReplies = sync.OnceFunc(func() { close(c.replyEnd) })
	go c.reply()
	key, _ := o.Key(jsonrpc.Envelope{}) // that of an envelope without names has no error
	c.endFollow = o.Follow(key, follower{c})
	return c
}

// Move lets the requests that come next work for another tenant: the rights of its principal changed.
func (c *Conn) Move(t *tenants.Tenant) { c.tenant.Store(t) }

// Close ends what NewConn began. Nothing is written any more.
func (c *Conn) Close() {
	c.endFollow()
	c.asks.Close()
	c.Out.Shut(jsonrpc.ErrClosed) // a reader that was left behind writes nothing any more
	c.endReplies()
	c.workers.stop()
}

// End takes no more requests, lets calls finish for grace, then cancels them. Open listens get their result at once.
// What the reading goroutine has answered is written before the end. Once ctx ends, all that is shorter, also what
// comes after End.
func (c *Conn) End(ctx context.Context, grace time.Duration) {
	context.AfterFunc(ctx, c.o.Hurry) // until the process ends
	drained := c.Drain()
	if !Finishes(ctx, drained, grace, SignalGrace) {
		c.Flights.CancelAll(jsonrpc.ErrClosed)
		Finishes(ctx, drained, CancelGrace, HurriedGrace)
	}
	c.endReplies()
	Finishes(ctx, c.replied, SignalGrace, ReplyGrace)
}

// Drain takes no more requests and ends what waits for the client: questions get no answer any more, and listens end
// with their result. The channel is closed when all requests have ended.
func (c *Conn) Drain() <-chan struct{} {
	c.asks.Close()
	drained := c.Flights.Close()
	c.Flights.EndStreams(jsonrpc.ErrClosed)
	return drained
}

// EndReplies lets what the reading goroutine has answered be written, for at most d.
func (c *Conn) EndReplies(d time.Duration) {
	c.endReplies()
	Within(c.replied, d)
}

// Revision is the protocol that the client initialized with; "": it has not yet.
func (c *Conn) Revision() string {
	if client := c.client.Load(); client != nil {
		return client.Protocol
	}
	return ""
}

// reply writes what the reading goroutine answers. At the end of the connection it writes what is left.
func (c *Conn) reply() {
	defer close(c.replied)
	write := func(line []byte) { _ = c.Out.WriteLine(line, 0, nil) } // a write error ends the connection by itself
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

// Handle takes one line in the order of arrival. What it does itself is fast; a request runs in a goroutine.
func (c *Conn) Handle(ctx context.Context, l jsonrpc.Line) {
	if l.Long {
		c.send(jsonrpc.ErrorLine(l.ID, jsonrpc.TooLong().Answer()))
		return
	}
	if len(l.Bytes) == 0 {
		return
	}
	env, bad := jsonrpc.Scan(l.Bytes)
	if bad != nil {
		c.Refuse(env, bad)
		return
	}
	c.Take(ctx, env, l.Bytes)
}

// Take is Handle for a message that passed the scan.
func (c *Conn) Take(ctx context.Context, env jsonrpc.Envelope, msg []byte) {
	switch {
	case env.Method == "" && (env.HasResult || env.HasError):
		c.asks.Answer(env.ID, msg)
	case env.IDKind != jsonrpc.IDNone && (env.Method == "" || env.HasResult || env.HasError):
		c.send(jsonrpc.ErrorLine(env.ID,
			&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "neither a request nor an answer"}))
	case env.IDKind == jsonrpc.IDNone:
		c.notification(ctx, env)
	default:
		c.request(ctx, env, msg)
	}
}

// Refuse answers a message that failed the scan. A notification is never answered.
func (c *Conn) Refuse(env jsonrpc.Envelope, bad *jsonrpc.Fault) {
	switch {
	case env.IDKind == jsonrpc.IDNone:
	case bad.InArguments:
		c.send(c.o.Server.Refuse(env, env.Modern(), c.o.Unusable(env.Name, bad)).Line(env.ID))
	default:
		c.send(jsonrpc.ErrorLine(env.ID, bad.Answer()))
	}
}

func (c *Conn) notification(ctx context.Context, env jsonrpc.Envelope) {
	switch env.Method {
	case noteCancelled:
		if env.RequestID != nil {
			c.Flights.Cancel(env.RequestID, jsonrpc.ErrCancelled)
		}
	case noteInitialized:
		c.settleRoots(ctx)
	case noteRootsChanged:
		c.roots.Changed()
		c.settleRoots(ctx)
	}
}

// settleRoots asks the client for its roots if that is due, before its next call has to wait for it.
func (c *Conn) settleRoots(ctx context.Context) {
	if client := c.client.Load(); client == nil || !client.HasRoots {
		return
	}
	c.workers.do(func() {
		c.roots.Settle(ctx, c.o.RootsTime, c.tenant.Load(), func(ctx context.Context) (json.RawMessage, bool) {
			answer, err := c.asks.Call(ctx, c.way(nil), methodListRoots, nil)
			return answer, !errors.Is(err, jsonrpc.ErrNoCalls)
		})
	})
}

// request enters a request in the table, has the server take it in, and runs it. The first two happen here, on the
// reading goroutine, so a cancel that comes next finds it, and calls pass the gate in the order in which they came.
func (c *Conn) request(ctx context.Context, env jsonrpc.Envelope, msg []byte) {
	ctx, cancel := context.WithCancelCause(ctx)
	f := &jsonrpc.Flight{
		ID: env.ID, Call: env.Method == methodCall, First: env.Method == methodInitialize, Cancel: cancel,
		Stream: env.Modern() && env.Method == methodListen,
	}
	if err := c.Flights.Add(f); err != nil {
		cancel(nil)
		c.send(c.full(env, err))
		return
	}
	finish := func() {
		cancel(nil)
		c.Flights.Done(f)
	}
	r := c.make(env, msg, f)
	key, err := c.o.Key(env)
	if err != nil && sessions.Keyed(env, env.Modern()) {
		finish()
		c.send(jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}))
		return
	}
	r.Session = key
	work, changes := c.o.Serve(r)
	f.Orphan.Store(changes)
	if f.First {
		answer := work(ctx) // here, since what comes next depends on it
		c.initialized(answer.Client)
		line := answer.Line(env.ID)
		c.workers.do(func() {
			defer finish()
			_ = c.Out.WriteLine(line, 0, func() bool { // in the writer's turn: no broadcast comes before the answer
				ok := f.Settle()
				if ok && answer.Client != nil {
					c.started.Store(true)
				}
				return ok
			})
			answer.WasSent()
		})
		return
	}
	c.workers.do(func() {
		defer finish()
		answer := work(ctx)
		// a cancelled request gets no answer; a write error ends the connection
		_ = c.Out.WriteLine(answer.Line(env.ID), 0, f.Settle)
		answer.WasSent()
	})
}

// make makes the request of a message.
func (c *Conn) make(env jsonrpc.Envelope, msg []byte, f *jsonrpc.Flight) request.Request {
	r := request.Request{
		Envelope: env, Message: msg, Tenant: c.tenant.Load(), Caller: c.o.Caller,
		Peer:   &peer{c: c, f: f, modern: env.Modern()},
		Client: request.Client{Modern: env.Modern(), Prompts: &c.prompts},
	}
	r.Caller.From.Era = env.Era()
	if r.Client.Modern {
		return r
	}
	r.Client.Roots = &c.roots
	r.Client.Muted = c.answers.never.Load()
	if client := c.client.Load(); client != nil {
		r.Client.ClientRecord = *client
	}
	r.Shelf, _ = c.o.Key(env.Unnamed()) // that of an envelope without names has no error
	return r
}

// initialized keeps what the client said of itself; nil: the handshake failed.
func (c *Conn) initialized(client *sessions.ClientRecord) {
	if client == nil {
		return
	}
	c.client.Store(client)
	c.roots.Restore(client.HasRoots, nil)
}

// full answers a request that the table does not take; at the end of the connection, not at all.
func (c *Conn) full(env jsonrpc.Envelope, err error) []byte {
	switch {
	case errors.Is(err, jsonrpc.ErrClosed):
		return nil
	case errors.Is(err, jsonrpc.ErrIDInUse):
		return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()})
	case env.Method != methodCall:
		return jsonrpc.ErrorLine(env.ID, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
	}
	refusal := tool.Refuse(tool.Busy, "%d calls are in flight on this connection. Nothing was done. "+
		"Try again when some are answered.", jsonrpc.MaxInFlight)
	return c.o.Server.Refuse(env, env.Modern(), refusal).Line(env.ID)
}

// send queues an answer of the reading goroutine. When very many wait for a client that does not read, so does it.
func (c *Conn) send(line []byte) {
	if line == nil {
		return
	}
	select {
	case c.replies <- line:
	case <-c.Out.Failed:
	}
}

// way is how a request of ours reaches the client; f nil: it belongs to no request.
func (c *Conn) way(f *jsonrpc.Flight) jsonrpc.Way {
	return jsonrpc.Way{
		Send: func(line []byte) error {
			if f == nil {
				return c.Out.WriteLine(line, c.o.RootsTime, nil)
			}
			return c.Out.WriteLine(line, 0, f.Waits)
		},
		// who does not read sees no question
		Withdraw: func(line []byte) { _ = c.Out.WriteLine(line, c.Out.Patience, nil) },
		Gone:     c.Out.Failed,
	}
}

// A peer is the other end of one request.
type peer struct {
	c      *Conn
	f      *jsonrpc.Flight
	modern bool
}

var errNotStarted = errors.New("the client has not initialized")

// Notify sends a notification. A client that does not read loses progress.
func (p *peer) Notify(method string, params any) error {
	line, err := jsonrpc.NoticeLine(method, params)
	switch {
	case err != nil:
		return err
	case method == noteProgress:
		return p.c.Out.WriteLine(line, p.c.Out.Patience, p.f.Waits)
	case !p.modern && !p.c.started.Load():
		return errNotStarted
	}
	return p.c.Out.WriteLine(line, 0, p.f.Waits)
}

// Call sends a request of the server, which only legacy clients take.
func (p *peer) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if p.modern {
		return nil, jsonrpc.ErrNoCalls
	}
	call := func(ctx context.Context, method string, params any) (json.RawMessage, error) {
		return p.c.asks.Call(ctx, p.c.way(p.f), method, params)
	}
	if method == methodAsk && p.c.o.Doubted {
		return p.c.answers.ask(ctx, call, params)
	}
	return call(ctx, method, params)
}

// answering is whether a client answers the requests of the server. Its zero value: it is not known.
type answering struct {
	proved atomic.Bool // it answered a ping
	never  atomic.Bool // it let a ping or a question wait until the time was over
}

// pingTime is how long a client has to answer a ping, which needs no person.
const pingTime = 10 * time.Second

// ask puts a question with call if the client is one that answers. As with call, a nil result is no answer.
func (a *answering) ask(
	ctx context.Context, call func(context.Context, string, any) (json.RawMessage, error), question any,
) (json.RawMessage, error) {
	if a.never.Load() {
		return nil, jsonrpc.ErrNoCalls
	}
	if !a.proved.Load() {
		soon, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if answer, err := call(soon, methodPing, nil); err != nil {
			return nil, err
		} else if answer == nil && soon.Err() != nil { // an error is an answer, too
			if ctx.Err() == nil {
				a.never.Store(true)
			}
			return nil, nil
		}
		a.proved.Store(true)
	}
	answer, err := call(ctx, methodAsk, question)
	if answer == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a.never.Store(true)
	}
	return answer, err
}

func (p *peer) Gone() <-chan struct{} { return p.c.o.Gone }

// A follower is the peer of what answers no request.
type follower struct{ c *Conn }

func (f follower) Notify(method string, params any) error {
	if !f.c.started.Load() {
		return errNotStarted
	}
	line, err := jsonrpc.NoticeLine(method, params)
	if err != nil {
		return err
	}
	return f.c.Out.WriteLine(line, 0, nil)
}

func (f follower) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (f follower) Gone() <-chan struct{} { return f.c.o.Gone }
