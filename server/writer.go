package server

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

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/results"
)

// What a responder is.
const (
	replyFresh  = iota // nothing was sent
	replyStream        // an event stream is open
	replyDone          // nothing may be sent any more
)

// A responder is the answer to one HTTP request of MCP. It keeps status and header back until it is known whether the
// answer is one JSON body or an event stream; the first notification, a long silence, and mcp-go's own events make it
// a stream. It is safe for concurrent use: mcp-go writes from two goroutines, and notes come from others.
type responder struct {
	e       *httpEndpoint
	w       http.ResponseWriter
	control *http.ResponseController
	rec     *record
	f       *jsonrpc.Flight
	stream  bool   // may become an event stream
	lost    func() // the connection broke

	mu     sync.Mutex
	phase  int
	header http.Header // what mcp-go set; not sent before it is known what the answer is
	status int         // of mcp-go; 0: none yet
	heard  bool        // one of its events was sent: a listen is acknowledged
	held   []byte      // a notice that came before that; nil: none did
	events bool        // mcp-go writes an event stream: each of its writes is one event
	body   []byte      // mcp-go's JSON answer
	beat   *time.Timer
}

// newResponder begins the answer to a request. lost is called when a write fails. stream says that it may become an event
// stream.
func (e *httpEndpoint) newResponder(w http.ResponseWriter, rec *record, f *jsonrpc.Flight, stream bool, lost func()) *responder {
	r := &responder{e: e, w: w, control: http.NewResponseController(w), rec: rec, f: f, stream: stream, lost: lost}
	_ = r.control.SetWriteDeadline(time.Time{}) // each write has its own
	if stream {
		r.mu.Lock() // the timer's goroutine looks at beat
		defer r.mu.Unlock()
		r.beat = time.AfterFunc(e.keepAlive, r.silence)
	}
	return r
}

// mayStream says whether the client takes an event stream as an answer.
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

// The methods that mcp-go asks of a response.

func (r *responder) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

func (r *responder) CanStream() bool { return r.stream }

// Flush does nothing: whatever is sent is flushed at once.
func (r *responder) Flush() {}

func (r *responder) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
	if strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		r.events = true
		r.open()
	}
}

// Write takes what mcp-go answers. The last event of its stream is the answer, which finish encodes as our own.
func (r *responder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.events {
		r.body = append(r.body, p...)
		return len(p), nil
	}
	data := bytes.TrimSpace(p)
	if _, after, ok := bytes.Cut(data, []byte("data: ")); ok {
		data = after
	}
	env, bad := jsonrpc.Scan(data)
	if bad == nil && env.Method == "" {
		r.body = append(r.body[:0], data...)
		return len(p), nil
	}
	if r.phase != replyStream || !r.f.Waits() {
		return len(p), nil
	}
	if err := r.event(r.rec.retag(data)); err != nil {
		return 0, err
	}
	r.heard = true
	if held := r.held; held != nil {
		r.held = nil
		_ = r.event(held) // broken says so
	}
	return len(p), nil
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
	r.rec.limits.Sent(int64(len(b)))
	if r.beat != nil {
		r.beat.Reset(r.e.keepAlive)
	}
	return nil
}

// deadline bounds the next write: a client that does not read counts as gone.
func (r *responder) deadline() { _ = r.control.SetWriteDeadline(time.Now().Add(writeTime)) }

func (r *responder) broken() {
	r.phase = replyDone
	r.rec.lost.Store(true) // at once: the call may end before anybody has run what follows
	go r.lost()            // it may need what the caller holds
}

// silence sends a comment on a stream on which nothing was sent for a while, and opens one for a call that takes long: so
// no proxy on the way believes that nobody is there.
func (r *responder) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == replyDone || !r.f.Waits() {
		return
	}
	r.open()
	if r.phase == replyStream {
		_ = r.send([]byte(": keep-alive\n\n")) // broken says so
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
	if !r.f.Settle() { // cancelled: no answer, and the stream ends
		if r.phase == replyFresh && !errors.Is(context.Cause(ctx), jsonrpc.ErrClosed) {
			r.open()
		}
		return
	}
	if r.phase == replyStream {
		_ = r.event(bytes.TrimSuffix(answer, []byte("\n"))) // broken says so
		return
	}
	r.plain(answer, status)
}

// end ends a stream that answers nothing.
func (r *responder) end(ctx context.Context) {
	r.mu.Lock()
	if r.beat != nil {
		r.beat.Stop()
	}
	refused := r.phase == replyFresh && r.status != 0
	r.phase = replyDone
	r.mu.Unlock()
	if refused {
		body, status := r.answer(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.plain(body, status)
	}
}

// tell sends one notification before the answer.
func (r *responder) tell(method string, params any) error {
	line, err := jsonrpc.NoticeLine(method, params)
	if err != nil {
		return err
	}
	return r.notify(line)
}

// plain sends one JSON body, or a status without one. The caller holds mu.
func (r *responder) plain(body []byte, status int) {
	h := r.w.Header()
	if len(body) > 0 {
		h.Set("Content-Type", "application/json")
	}
	if r.rec.hello != nil {
		h.Set(headerSession, r.rec.newID)
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
	r.rec.limits.Sent(int64(len(body)))
	_ = r.control.SetWriteDeadline(time.Time{}) // the connection is used again
}

// answer makes our answer of what mcp-go wrote: with the client's id as its bytes came, and without what our own
// encoding of a call's result replaces.
func (r *responder) answer(ctx context.Context) (line []byte, status int) {
	r.mu.Lock()
	body, status, kind := r.body, r.status, r.header.Get("Content-Type")
	r.mu.Unlock()
	s, rec := r.e.s, r.rec
	var parts struct {
		Result json.RawMessage          `json:"result"`
		Error  *mcp.JSONRPCErrorDetails `json:"error"`
	}
	isJSON := strings.HasPrefix(kind, "application/json") || r.isStream()
	switch {
	case rec.override != nil:
		line, status = rec.fail(rec.override), r.statusOf(rec.override.Code)
	case len(body) == 0 && (status == http.StatusAccepted || rec.env.IDKind == jsonrpc.IDNone && status != 0):
		return nil, status
	case len(body) == 0 && rec.listens() && errors.Is(context.Cause(ctx), errDraining):
		line, status = s.encode(ctx, rec, mcp.JSONRPCResponse{Result: s.completed()}), http.StatusOK
	case len(body) == 0 && errors.Is(context.Cause(ctx), errDraining):
		line, status = rec.fail(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: errDraining.Error()}), http.StatusServiceUnavailable
	case len(body) == 0:
		line, status = rec.fail(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "result could not be encoded"}), http.StatusOK
	case !isJSON: // mcp-go refuses in plain text
		line = refusalBody(rec.env.ID, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: results.Line(string(body), 300)})
	case json.Unmarshal(body, &parts) != nil:
		ref := s.report(ctx, "mcp-go's answer", errors.New("not JSON"), nil)
		line, status = rec.fail(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: "internal error (ref " + ref + ")"}), http.StatusOK
	case parts.Error != nil:
		if own, ok := s.extended(ctx, rec, parts.Error.Code); ok {
			line, status = s.encode(ctx, rec, own), http.StatusOK
			if e, bad := own.(mcp.JSONRPCError); bad {
				status = r.statusOf(e.Error.Code)
			}
			break
		}
		e := s.mapError(rec, *parts.Error)
		line = rec.fail(e)
		if status == http.StatusOK {
			status = r.statusOf(e.Code)
		}
	case rec.result != nil:
		line = s.encode(ctx, rec, s.decorate(rec.env, rec.result))
	default:
		line = jsonrpc.ResultLine(rec.env.ID, rec.retag(parts.Result))
	}
	if len(line) >= jsonrpc.MaxResponse {
		line = s.tooLarge(rec, len(line))
	}
	if status == 0 {
		status = http.StatusOK
	}
	return line, status
}

func (r *responder) isStream() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

// statusOf is the HTTP status of a JSON-RPC error: the modern era has some, so that proxies can act without reading the
// body.
func (r *responder) statusOf(code int) int {
	if !r.rec.modern {
		return http.StatusOK
	}
	switch code {
	case mcp.INVALID_PARAMS, mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// completed is the result of a listen that the server ends.
func (s *Server) completed() mcp.SubscriptionsListenResult {
	r := mcp.SubscriptionsListenResult{}
	r.ResultType = mcp.ResultTypeComplete
	r.EnsureResultMeta().SetServerInfo(s.implementation)
	return r
}

// listens says whether the request is a subscriptions/listen.
func (r *record) listens() bool { return r.env.Method == string(mcp.MethodSubscriptionsListen) }

// exactID is the id as sent if mcp-go, which decodes it to a float, would change it; else nil.
func (r *record) exactID() json.RawMessage {
	if r.env.IDKind != jsonrpc.IDInteger || len(bytes.TrimPrefix(r.env.ID, []byte("-"))) <= 15 {
		return nil
	}
	return r.env.ID
}

// retag puts the exact id of a listen back where mcp-go wrote a rounded one.
func (r *record) retag(message []byte) []byte {
	exact := r.exactID()
	if exact == nil || !r.listens() {
		return message
	}
	rounded, err := strconv.ParseFloat(string(exact), 64)
	if err != nil {
		return message
	}
	was, err := json.Marshal(rounded)
	if err != nil {
		return message
	}
	name := []byte(`"` + mcp.MetaKeySubscriptionID + `":`)
	return bytes.ReplaceAll(message, append(bytes.Clone(name), was...), append(name, exact...))
}
