package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/auth/limits"
	"codehand/server/jsonrpc"
)

// The phases of a responder.
const (
	replyFresh  = iota // nothing was sent
	replyStream        // an event stream is open
	replyDone          // nothing may be sent any more
)

// A responder is the answer to one HTTP request of MCP. It keeps status and header back until it is known whether the
// answer is one JSON body or an event stream: the first notification and a long silence make it a stream. It is safe
// for concurrent use: notes come from several goroutines.
type responder struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limits  *limits.Limiter // charged for what is sent
	f       *jsonrpc.Flight
	stream  bool          // may become an event stream
	lost    func()        // called when a write fails, maybe with mu held
	silent  time.Duration // without a message, after which a comment is sent
	session string        // of an initialize that began one; "": none

	mu    sync.Mutex
	phase int
	beat  *time.Timer
}

// newResponder begins the answer to a request. lost is called when a write fails. stream says that it may become an
// event stream.
func (e *Endpoint) newResponder(
	w http.ResponseWriter, limits *limits.Limiter, f *jsonrpc.Flight, stream bool, lost func(),
) *responder {
	r := &responder{
		w: w, control: http.NewResponseController(w), limits: limits, f: f, stream: stream, lost: lost,
		silent: e.keepAlive,
	}
	_ = r.control.SetWriteDeadline(time.Time{}) // each write has its own
	if stream {
		r.mu.Lock() // the timer's goroutine looks at beat
		defer r.mu.Unlock()
		r.beat = time.AfterFunc(e.keepAlive, r.silence)
	}
	return r
}

// mayStream reports whether the client accepts an event stream as an answer.
func mayStream(accept []string) bool {
	if len(accept) == 0 {
		return true
	}
	for _, line := range accept {
		for kind := range strings.SplitSeq(line, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "text/event-stream", "text/*", "*/*":
				return true
			}
		}
	}
	return false
}

// notify sends one message before the answer. When it returns, the operating system has it.
func (r *responder) notify(message []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stream || r.phase == replyDone || !r.f.Waits() {
		return jsonrpc.ErrAnswered
	}
	r.open()
	return r.event(bytes.TrimSuffix(message, []byte("\n")))
}

// open makes the answer an event stream. The caller holds mu.
func (r *responder) open() {
	if r.phase != replyFresh {
		return
	}
	h := r.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	r.phase = replyStream
	r.deadline()
	r.w.WriteHeader(http.StatusOK)
	if err := r.control.Flush(); err != nil {
		r.broken()
		return
	}
	_ = r.control.SetWriteDeadline(time.Time{})
}

// event sends one event. The caller holds mu.
func (r *responder) event(data []byte) error {
	b := make([]byte, 0, len(data)+32)
	b = append(b, "event: message\ndata: "...)
	b = append(b, data...)
	b = append(b, "\n\n"...)
	return r.send(b)
}

// send writes and flushes. The caller holds mu.
func (r *responder) send(b []byte) error {
	r.deadline()
	_, err := r.w.Write(b)
	if err == nil {
		err = r.control.Flush()
	}
	if err != nil {
		r.broken()
		return err
	}
	_ = r.control.SetWriteDeadline(time.Time{}) // in HTTP/2 one that has passed ends the stream
	r.limits.Sent(int64(len(b)))
	if r.beat != nil {
		r.beat.Reset(r.silent)
	}
	return nil
}

// deadline bounds the next write: a client that does not read counts as gone.
func (r *responder) deadline() { _ = r.control.SetWriteDeadline(time.Now().Add(writeTime)) }

func (r *responder) broken() {
	r.phase = replyDone
	r.lost()
}

// silence sends a comment if nothing was sent for a while, and opens the stream of a call that takes long, so that no
// proxy on the way gives up on it.
func (r *responder) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == replyDone || !r.f.Waits() {
		return
	}
	r.open()
	if r.phase == replyStream {
		_ = r.send([]byte(": keep-alive\n\n")) // after an error, broken has called lost
	}
}

// finish sends the answer, if the request still waits for one, and ends the response. Nothing is sent after it.
func (r *responder) finish(ctx context.Context, answer []byte, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.beat != nil {
		r.beat.Stop()
	}
	defer func() { r.phase = replyDone }()
	if r.phase == replyDone {
		return
	}
	// Who cancelled a request gets an empty event stream instead of an answer; who lost the token learns that.
	if lost := errors.Is(context.Cause(ctx), errRevoked) && !r.f.Stream; !r.f.Settle() && !lost {
		if r.phase == replyFresh && !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
			r.open()
		}
		return
	}
	if r.phase == replyStream {
		_ = r.event(bytes.TrimSuffix(answer, []byte("\n"))) // after an error, broken has called lost
		return
	}
	r.plain(answer, status)
}

// begin opens the stream of a request that has no answer.
func (r *responder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open()
}

// end ends a stream that answers nothing.
func (r *responder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beat.Stop()
	r.phase = replyDone
}

// plain sends one JSON body, or a status without one. The caller holds mu.
func (r *responder) plain(body []byte, status int) {
	h := r.w.Header()
	if len(body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	if r.session != "" {
		h.Set(headerSession, r.session)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	r.deadline()
	r.w.WriteHeader(status)
	_, err := r.w.Write(body)
	if err == nil {
		err = r.control.Flush()
	}
	if err != nil {
		r.broken()
		return
	}
	r.limits.Sent(int64(len(body)))
	_ = r.control.SetWriteDeadline(time.Time{}) // the connection is used again
}

// A peer is the other end of one request.
type peer struct {
	w     *responder
	gone  <-chan struct{}
	scope *httpSession // of a legacy request; else nil
}

// Notify sends a notification on the stream that the answer becomes.
func (p *peer) Notify(method string, params any) error {
	line, err := jsonrpc.NoticeLine(method, params)
	if err != nil {
		return err
	}
	return p.w.notify(line)
}

// Call sends a request of the server on that stream; the client's answer comes with a request of its own.
func (p *peer) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if p.scope == nil || !p.w.stream {
		return nil, jsonrpc.ErrNoCalls
	}
	// an error is ignored: if the stream ended, the client already knows that the question is void
	withdraw := func(line []byte) { _ = p.w.notify(line) }
	return p.scope.asks.Call(ctx, jsonrpc.Way{Send: p.w.notify, Withdraw: withdraw, Gone: p.gone}, method, params)
}

func (p *peer) Gone() <-chan struct{} { return p.gone }
