package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/stdio"
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
	conn  *conn
	via   string          // what its client authenticated with
	calls context.Context // of its calls; they outlive the stream by the orphan's grace

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

// take hands a message to the connection. It is false for one that wants an answer when none is given any more.
func (x *sseStream) take(at *place, env jsonrpc.Envelope, fault *jsonrpc.Fault, body []byte) bool {
	x.turn.Lock()
	defer x.turn.Unlock()
	if env.IDKind != jsonrpc.IDNone && x.conn.table.Closing() {
		return false
	}
	x.conn.at = at // its rights may have changed since the stream was opened
	if fault != nil {
		x.conn.refuse(env, fault)
	} else {
		x.conn.take(x.calls, env, body)
	}
	return true
}

// close takes no more requests. Whatever was taken is answered, so it waits for one that is just coming in. The channel is
// closed when all have ended.
func (x *sseStream) close() <-chan struct{} {
	x.turn.Lock()
	defer x.turn.Unlock()
	return x.conn.table.Close()
}

// left says that nobody reads the stream any more: no more requests are taken, and the calls that run learn of it. What only
// reads ends.
func (x *sseStream) left() {
	x.conn.table.Close()
	for _, f := range x.conn.table.List() {
		f.Lost()
		if !f.Orphan {
			f.Abort(jsonrpc.ErrClosed)
		}
	}
}

// openSSE serves GET /sse until the client goes or the server ends.
func (e *httpEndpoint) openSSE(w http.ResponseWriter, r *http.Request, c caller) {
	end, err := c.limits.Stream()
	if err != nil {
		deny(w, r, e.limited(c, "streams", err))
		return
	}
	defer end()
	place, err := e.t.places.of(c.who)
	if err != nil {
		e.s.internal(r.Context(), "place", err)
		deny(w, r, err)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	calls, stop := context.WithCancelCause(e.base)
	defer stop(jsonrpc.ErrClosed)
	out := &sseWriter{w: w, control: http.NewResponseController(w), limits: c.limits}
	conn, err := e.s.newConn(r.Context(), "sse", place, jsonrpc.NewLineWriter(out, e.s.patience))
	if err != nil {
		e.s.internal(r.Context(), "sse", err)
		deny(w, r, err)
		return
	}
	defer conn.close()
	x := &sseStream{conn: conn, via: c.who.Via, calls: calls}
	out.lost = x.left
	id := e.t.signer.id(labelSSE, c.who.ID)
	conn.limits = c.limits
	conn.mute = true // one of its clients declares elicitation and never answers: its calls would hang
	conn.from = pipeline.From{Auth: c.who.Via, Transport: "sse", IP: c.ip}
	conn.key = func(env jsonrpc.Envelope) (session.Key, *jsonrpc.Error) { return httpKey(c.who, env, "", kindSSE+id) }
	conn.gone = func() bool { return r.Context().Err() != nil } // as over Streamable HTTP
	entry := &active{who: c.who, kind: "sse"}
	entry.cancel = func(cause error) {
		go func() { // its answers have no other way than this stream
			switch {
			case errors.Is(cause, errDraining):
				conn.asks.close() // nothing is taken any more, an answer neither
				conn.listens.endAll()
				stdio.Within(x.close(), e.s.cfg.HTTP.Drain)
			case errors.Is(cause, errRevoked): // its calls have no right to go on, and one on its way has none to begin
				conn.table.Close()
				conn.table.CancelAll(cause)
			}
			cancel(cause)
		}()
	}
	if err := e.begin(entry); err != nil {
		deny(w, r, err)
		return
	}
	defer e.work.end(entry)
	e.sseWarned.Do(func() { e.log.Warn("a client uses the deprecated SSE transport of 2024-11-05; /mcp is its successor") })

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	e.t.event("session.start", map[string]any{"p": c.who.ID, "sk": kindSSE + id, "tr": "sse"})
	e.sse.add(id, x)
	defer e.sse.remove(id)
	began := time.Now()
	first := "event: endpoint\ndata: " + e.prefix + pathMessage + "?sessionId=" + url.QueryEscape(id) + "\n\n"
	if conn.out.WriteLine([]byte(first), 0, nil) == nil {
		e.hold(ctx, conn)
	}
	if errors.Is(context.Cause(ctx), errDraining) { // what the reading side has answered goes out, too
		conn.endReplies()
		stdio.Within(conn.replied, restTime)
	}
	x.left() // before what may take its time: a call that ends meanwhile has no reader any more
	conn.out.Shut(jsonrpc.ErrClosed)
	if !conn.out.Rest(restTime) { // w is not ours any more when this returns, so nobody may be inside of it
		_ = out.control.SetWriteDeadline(time.Now())
		conn.out.Rest(writeTime)
	}
	e.orphans(conn)
	e.t.metrics.Ended(conn.version(), "sse", time.Since(began))
	e.t.event("session.end", map[string]any{"p": c.who.ID, "sk": kindSSE + id})
}

// hold keeps a stream open, with a comment now and then.
func (e *httpEndpoint) hold(ctx context.Context, c *conn) {
	beat := time.NewTicker(e.keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.out.Failed:
			return
		case <-beat.C:
			_ = c.out.WriteLine([]byte(": keep-alive\n\n"), c.out.Patience, nil) // an event on its way is as good
		}
	}
}

// orphans lets calls that change something finish when their client is gone, for a while.
func (e *httpEndpoint) orphans(c *conn) {
	drained := c.table.Close()
	c.asks.close()
	c.listens.endAll()
	if !stdio.Within(drained, e.s.cfg.HTTP.OrphanGrace) {
		c.table.CancelAll(jsonrpc.ErrClosed)
		stdio.Within(drained, stdio.CancelGrace)
	}
}

// message takes one message of a legacy SSE client. The answer leaves on the stream.
func (e *httpEndpoint) message(w http.ResponseWriter, r *http.Request, c caller) {
	ids := r.URL.Query()["sessionId"]
	var x *sseStream
	if len(ids) == 1 && e.t.signer.valid(labelSSE, c.who.ID, ids[0]) {
		x = e.sse.find(ids[0])
	}
	if x == nil || x.via != c.who.Via { // another token has no part in this stream: its end must not go on over this one
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
		ex := &exchange{e: e, w: w, r: r, c: c, rec: &record{env: env}}
		ex.malformed(fault)
		return
	}
	if err := e.valid(c.who); err != nil { // it was revoked while the body came
		deny(w, r, err)
		return
	}
	at, err := e.t.places.of(c.who)
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
	limits  *auth.Limits // that what is sent counts against
	lost    func()       // told that a write failed, before anybody else learns it
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
