package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"codehand/server/auth/limits"
	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/stdio"
	"codehand/server/tenants"
	"codehand/tools/session"
)

// restTime is how long a write that has begun may take when its stream ends.
const restTime = time.Second

// sseStreams are the open streams of legacy SSE, by session id. It is safe for concurrent use.
type sseStreams struct {
	mu   sync.Mutex
	open map[string]*sseStream
}

// An sseStream is one client of legacy SSE: what it posts comes in at one path, and all answers leave on one stream.
type sseStream struct {
	conn  *stdio.Conn
	via   string          // what its client authenticated with
	calls context.Context // of its calls, which may run on for http.orphan_grace after the stream ends
	leave func()          // tells its calls that the client no longer reads answers
	entry *active         // of the stream

	turn sync.Mutex // posts are taken one after the other, in the order in which they came
}

func newSSEStreams() *sseStreams { return &sseStreams{open: map[string]*sseStream{}} }

func (s *sseStreams) add(id string, x *sseStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[id] = x
}

func (s *sseStreams) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

func (s *sseStreams) find(id string) *sseStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[id]
}

// take passes a message to the connection. It returns false for a request that came after the stream began to close.
func (x *sseStream) take(at *tenants.Tenant, env jsonrpc.Envelope, fault *jsonrpc.Fault, body []byte) bool {
	x.turn.Lock()
	defer x.turn.Unlock()
	if env.IDKind != jsonrpc.IDNone && x.conn.Flights.Closing() {
		return false
	}
	x.conn.Move(at) // its rights may have changed since the stream was opened
	if fault != nil {
		x.conn.Refuse(env, fault)
	} else {
		x.conn.Take(x.calls, env, body)
	}
	return true
}

// drain accepts no more requests and ends what waits for the client. It waits for a POST that take is handling. The
// channel is closed when all requests have ended.
func (x *sseStream) drain() <-chan struct{} {
	x.turn.Lock()
	defer x.turn.Unlock()
	return x.conn.Drain()
}

// left is called when the client no longer reads the stream. It accepts no more requests, tells the running calls, and
// cancels those that only read.
func (x *sseStream) left() {
	x.leave()
	x.conn.Flights.Close()
	for _, f := range x.conn.Flights.List() {
		if !f.Orphan.Load() {
			f.Abort(jsonrpc.ErrClosed)
		}
	}
}

// firstEvent tells a client where to post its messages.
func firstEvent(path, id string) string {
	return "event: endpoint\ndata: " + path + "?sessionId=" + url.QueryEscape(id) + "\n\n"
}

// messagePath is where the client of a stream posts its messages.
func messagePath(prefix string, tokenPaths bool, r *http.Request) string {
	if tokenPaths && strings.HasPrefix(r.URL.Path, prefix+PathTokens+"/") {
		return prefix + PathTokens + pathMessage
	}
	return prefix + pathMessage
}

// openSSE serves GET /sse until the client goes or the server ends.
func (e *Endpoint) openSSE(w http.ResponseWriter, r *http.Request, c caller) {
	end, err := c.limits.Stream()
	if err != nil {
		deny(w, r, e.limited(c, "streams", err))
		return
	}
	defer end()
	tenant, err := e.o.Tenants.Of(c.who)
	if err != nil {
		e.o.Report(r.Context(), "place", err)
		deny(w, r, err)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	gone, leave := context.WithCancel(r.Context())
	defer leave()
	calls, stop := context.WithCancelCause(e.base)
	defer stop(jsonrpc.ErrClosed)
	id := e.o.Signer.id(labelSSE, c.who.ID)
	out := &sseWriter{w: w, control: http.NewResponseController(w), limits: c.limits}
	conn := stdio.NewConn(stdio.Options{
		Server: e.o.Server, Tenant: tenant, Gone: gone.Done(),
		// At least one SSE client (not recorded which) declares elicitation and never answers: its calls would hang.
		Doubted: true,
		Caller:  request.Caller{Limits: c.limits, From: c.from("sse", "")},
		Key: func(env jsonrpc.Envelope) (session.Key, error) {
			return sessions.HTTPKey(c.who, env, "", sessions.BySSE+id)
		},
	}, jsonrpc.NewLineWriter(out, cmp.Or(e.o.Patience, jsonrpc.ProgressPatience)))
	defer conn.Close()
	entry := &active{who: c.who, kind: "sse"}
	x := &sseStream{conn: conn, via: c.who.Via, calls: calls, leave: leave, entry: entry}
	out.lost = x.left
	entry.cancel = func(cause error) {
		go func() { // its answers have no other way than this stream
			switch {
			case errors.Is(cause, errDraining):
				stdio.Within(x.drain(), e.o.HTTP.Drain)
			case errors.Is(cause, errRevoked): // stop its running calls, and accept no new ones
				conn.Flights.Close()
				conn.Flights.CancelAll(cause)
			}
			cancel(cause)
		}()
	}
	if err := e.begin(entry); err != nil {
		deny(w, r, err)
		return
	}
	defer e.work.end(entry)
	e.sseWarned.Do(func() {
		e.o.Log.Warn("a client uses the deprecated SSE transport of 2024-11-05; /mcp is its successor")
	})

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	e.o.Team.Event("session.start", map[string]any{"p": c.who.ID, "sk": sessions.BySSE + id, "tr": "sse"})
	e.sse.add(id, x)
	defer e.sse.remove(id)
	began := time.Now()
	first := firstEvent(messagePath(e.prefix, e.o.Team.SignIn.TokenPaths, r), id)
	if conn.Out.WriteLine([]byte(first), 0, nil) == nil {
		e.hold(ctx, conn)
	}
	if errors.Is(context.Cause(ctx), errDraining) { // what the reading side has answered goes out, too
		conn.EndReplies(restTime)
	}
	x.left() // first, since the next steps may take long: calls that end meanwhile must see that the client has gone
	conn.Out.Shut(jsonrpc.ErrClosed)
	if !conn.Out.Rest(restTime) { // net/http reuses w after the handler returns, so no write may be running then
		_ = out.control.SetWriteDeadline(time.Now())
		conn.Out.Rest(writeTime)
	}
	e.orphans(conn)
	e.o.Team.Metrics.Ended(conn.Revision(), "sse", time.Since(began))
	e.o.Team.Event("session.end", map[string]any{"p": c.who.ID, "sk": sessions.BySSE + id})
}

// hold keeps a stream open, with a comment now and then.
func (e *Endpoint) hold(ctx context.Context, c *stdio.Conn) {
	beat := time.NewTicker(e.keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Out.Failed:
			return
		case <-beat.C:
			_ = c.Out.WriteLine([]byte(": keep-alive\n\n"), c.Out.Patience, nil) // an event on its way is as good
		}
	}
}

// orphans lets calls that change something finish when their client is gone, for a while.
func (e *Endpoint) orphans(c *stdio.Conn) {
	drained := c.Drain()
	if !stdio.Within(drained, e.o.HTTP.OrphanGrace) {
		c.Flights.CancelAll(jsonrpc.ErrClosed)
		stdio.Within(drained, stdio.CancelGrace)
	}
}

// message takes one message of a legacy SSE client. The answer leaves on the stream.
func (e *Endpoint) message(w http.ResponseWriter, r *http.Request, c caller) {
	ids := r.URL.Query()["sessionId"]
	var x *sseStream
	if len(ids) == 1 && e.o.Signer.valid(labelSSE, c.who.ID, ids[0]) {
		x = e.sse.find(ids[0])
	}
	// Only the token that opened the stream may use it: Revoke ends the streams of a revoked token, and its calls must
	// not go on over the stream of another one.
	if x == nil || x.via != c.who.Via {
		deny(w, r, unknownSession())
		return
	}
	body, bad := e.body(w, r, c)
	if bad != nil {
		deny(w, r, bad)
		return
	}
	env, fault := jsonrpc.Scan(body)
	if fault != nil && !fault.InArguments {
		ex := &exchange{e: e, w: w, r: r, c: c, env: env}
		ex.malformed(fault)
		return
	}
	x.entry.by.Store(&c.who)               // before the look: if its token is revoked from now on, Revoke finds it
	if err := e.valid(c.who); err != nil { // it was revoked while the body came
		deny(w, r, err)
		return
	}
	at, err := e.o.Tenants.Of(c.who)
	if err != nil {
		deny(w, r, err)
		return
	}
	switch {
	case x.take(at, env, fault, body):
		w.WriteHeader(http.StatusAccepted)
	case e.work.closing():
		deny(w, r, draining())
	default:
		deny(w, r, unknownSession()) // the stream has ended
	}
}

// An sseWriter writes each line that a connection sends as one event. What is no message passes as it is.
type sseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limits  *limits.Limiter // that what is sent counts against
	lost    func()          // called first when a write failed
}

func (s *sseWriter) Write(line []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	b := line
	if len(line) > 0 && line[0] == '{' {
		b = make([]byte, 0, len(line)+32)
		b = append(b, "event: message\ndata: "...)
		b = append(b, bytes.TrimSuffix(line, []byte("\n"))...)
		b = append(b, "\n\n"...)
	}
	_, err := s.w.Write(b)
	if err == nil {
		err = s.control.Flush()
	}
	if err != nil {
		s.lost()
		return 0, err
	}
	s.limits.Sent(int64(len(b)))
	return len(line), s.control.SetWriteDeadline(time.Time{}) // in HTTP/2 one that has passed ends the stream

}
