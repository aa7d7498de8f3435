package server

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/pipeline"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// post serves one message of Streamable HTTP.
func (e *httpEndpoint) post(w http.ResponseWriter, r *http.Request, c caller, handle string) {
	body, bad := e.body(w, r, c)
	if bad != nil {
		deny(w, r, bad)
		return
	}
	env, fault := scanEnvelope(body)
	x := &exchange{e: e, w: w, r: r, c: c, body: body, handle: handle}
	x.rec = &record{
		env: env, limits: c.limits, modern: env.modern() || r.Header.Get(headerVersion) >= firstModern,
		from: pipeline.From{Auth: c.who.Via, Transport: "http", Era: env.era(), IP: c.ip},
	}
	if fault != nil {
		x.malformed(fault)
		return
	}
	isAnswer := env.method == "" && (env.hasResult || env.hasError)
	if !isAnswer && (env.method == "" || env.hasResult || env.hasError) {
		x.refuse(http.StatusBadRequest, &rpcError{Code: mcp.INVALID_REQUEST, Message: "neither a request nor an answer"})
		return
	}
	var err error
	if x.rec.place, err = e.t.places.of(c.who); err != nil {
		x.refuse(http.StatusOK, e.s.internal(r.Context(), "place", err))
		return
	}
	if x.rec.modern {
		x.modern(isAnswer)
	} else {
		x.legacy(isAnswer)
	}
}

// body reads the body of a POST, if it may be read at all.
func (e *httpEndpoint) body(w http.ResponseWriter, r *http.Request, c caller) ([]byte, *auth.Error) {
	most := e.s.cfg.HTTP.MaxBody
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil || kind != "application/json" || len(r.Header["Content-Type"]) > 1:
		return nil, &auth.Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "Content-Type must be application/json"}
	case len(r.Header["Content-Encoding"]) > 0:
		return nil, &auth.Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Message: "Content-Encoding is not supported"}
	case r.ContentLength > most:
		w.Header().Set("Connection", "close") // what follows is not read
		return nil, tooBig(most)
	}
	// Room is made as the body comes: what a header promises costs nothing.
	buf := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), 32<<10)+bytes.MinRead))
	_, err = buf.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // bound set it
	_ = control.SetWriteDeadline(time.Now().Add(writeTime))
	body := buf.Bytes()
	switch {
	case err == nil:
	case isTooBig(err):
		return nil, tooBig(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, &auth.Error{Status: http.StatusRequestTimeout, Code: "body_timeout", Message: "the body did not come in time"}
	default:
		return nil, &auth.Error{Status: http.StatusBadRequest, Code: "body_broken", Message: "the body cannot be read"}
	}
	if r.ContentLength < 0 { // the guard counted the most that it could be
		c.limits.Unread(most - int64(len(body)))
	}
	return body, nil
}

func tooBig(most int64) *auth.Error {
	return &auth.Error{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Message: "the body exceeds " + strconv.FormatInt(most, 10) + " bytes"}
}

func isTooBig(err error) bool {
	_, ok := errors.AsType[*http.MaxBytesError](err)
	return ok
}

// An exchange is one POST from its envelope to its answer.
type exchange struct {
	e      *httpEndpoint
	w      http.ResponseWriter
	r      *http.Request
	c      caller
	body   []byte
	handle string // in the URL; "": none
	rec    *record
	scope  *httpSession // of a legacy request; else nil
}

// refuse answers without mcp-go. A notification has no id, so its error has none.
func (x *exchange) refuse(status int, e *rpcError) {
	x.reply(status, refusalBody(x.rec.env.id, e))
}

func (x *exchange) reply(status int, body []byte) {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // a client that is gone needs no answer
}

// malformed answers a message that failed the scan. What the model wrote wrongly is the result of its call.
func (x *exchange) malformed(fault *envelopeError) {
	env, s := x.rec.env, x.e.s
	switch {
	case fault.InArguments && env.idKind != idNone:
		result := s.describeError(unusable(env.name, fault), env.name)
		x.reply(http.StatusOK, s.encode(x.r.Context(), x.rec, s.decorate(env, result)))
	case env.idKind == idNone:
		x.refuse(http.StatusBadRequest, fault.rpc())
	default:
		x.reply(http.StatusBadRequest, errorLine(env.id, fault.rpc()))
	}
}

// legacy serves a message of a session, or the initialize that begins one.
func (x *exchange) legacy(isAnswer bool) {
	e, env := x.e, x.rec.env
	if v := x.r.Header.Get(headerVersion); v != "" && env.method != string(mcp.MethodInitialize) && !slices.Contains(e.s.versions, v) {
		x.refuse(http.StatusBadRequest, &rpcError{Code: mcp.INVALID_REQUEST, Message: headerVersion + " names a version that is not served; there are " + strings.Join(e.s.versions, ", ")})
		return
	}
	var err error
	if env.method == string(mcp.MethodInitialize) && env.idKind != idNone {
		x.scope, err = e.https.start(x.c.who)
	} else {
		x.scope, err = e.session(x.r, x.c)
	}
	if errors.Is(err, errTooManySessions) {
		err = &auth.Error{Status: http.StatusServiceUnavailable, Code: "rate_limited", Message: err.Error(), RetryAfter: time.Minute}
	}
	if err != nil {
		deny(x.w, x.r, err)
		return
	}
	defer func() {
		e.https.release(x.scope)
		if x.rec.env.method == string(mcp.MethodInitialize) && x.rec.hello == nil && !isAnswer {
			e.https.drop(e, x.scope) // it began no session
		}
	}()
	x.rec.client = x.scope.client.Load()
	x.rec.newID = x.scope.id
	switch {
	case isAnswer:
		x.run(nil)
	case env.idKind == idNone:
		if env.method == "notifications/cancelled" && env.requestID != nil {
			x.scope.table.cancelID(env.requestID, errClientCancel)
		}
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.request()
	}
}

// session finds the legacy session of a request.
func (e *httpEndpoint) session(r *http.Request, c caller) (*httpSession, error) {
	ids := r.Header.Values(headerSession)
	if len(ids) != 1 || ids[0] == "" {
		return nil, &auth.Error{Status: http.StatusBadRequest, Code: "session_required", Message: headerSession + " required"}
	}
	x, err := e.https.acquire(r.Context(), c.who, ids[0])
	switch {
	case errors.Is(err, errNoSession):
		return nil, &auth.Error{Status: http.StatusNotFound, Code: "not_found", Message: noSession}
	case err != nil:
		e.log.Error("a session cannot be looked up", "err", err)
		return nil, &auth.Error{Status: http.StatusServiceUnavailable, Code: "store_unavailable", Message: "the state store does not answer", RetryAfter: time.Second}
	}
	return x, nil
}

// modern serves a message that has no session.
func (x *exchange) modern(isAnswer bool) {
	env := x.rec.env
	switch {
	case isAnswer:
		x.run(nil) // mcp-go refuses it
	case env.idKind == idNone:
		if env.method == "notifications/cancelled" && env.hasCall {
			if f, ok := x.e.named.Load(namedCall(x.c.who, env.call)); ok {
				f := f.(*flight)
				if f.state.CompareAndSwap(flightOpen, flightCancelled) {
					f.cancel(errClientCancel)
				}
			}
		}
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.request()
	}
}

// namedCall is the name under which a client may cancel a call of its own from another connection.
func namedCall(who auth.Principal, call string) string { return who.ID + "\x00" + call }

// request enters a request in the table of its session, takes its ticket, and runs it.
func (x *exchange) request() {
	e, env := x.e, x.rec.env
	ctx, cancel := context.WithCancelCause(e.base)
	defer cancel(nil)
	f := e.s.flight(env, cancel)
	if x.scope != nil {
		if err := x.scope.table.add(f); err != nil {
			x.full(err)
			return
		}
		defer x.scope.table.done(f)
	}
	if env.hasCall {
		name := namedCall(x.c.who, env.call)
		if _, taken := e.named.LoadOrStore(name, f); !taken {
			defer e.named.Delete(name)
		}
	}
	release := func() {}
	defer func() { release() }()
	key, bad := x.key()
	if bad == nil && f.call {
		bad = e.s.arrive(x.rec, key, &release)
	}
	if bad != nil {
		status := http.StatusOK
		if x.rec.modern && bad.Code == mcp.INVALID_PARAMS {
			status = http.StatusBadRequest
		}
		x.refuse(status, bad)
		return
	}
	if x.rec.visit != nil {
		defer func() {
			x.rec.visit.Leave()
			x.rec.leave()
		}()
	}
	x.dispatch(ctx, f)
}

// full answers a request that the table does not take.
func (x *exchange) full(err error) {
	switch {
	case errors.Is(err, errConnection): // its session was deleted meanwhile
		deny(x.w, x.r, &auth.Error{Status: http.StatusNotFound, Code: "not_found", Message: noSession})
	case errors.Is(err, errIDInUse):
		x.refuse(http.StatusOK, &rpcError{Code: mcp.INVALID_REQUEST, Message: err.Error()})
	case x.rec.env.method == string(mcp.MethodToolsCall):
		refusal := tool.Refuse(tool.Busy, "%d calls are in flight in this session. Nothing was done. Try again when some are answered.", maxInFlight)
		s := x.e.s
		x.reply(http.StatusOK, s.encode(x.r.Context(), x.rec, s.decorate(x.rec.env, s.describeError(refusal, x.rec.env.name))))
	default:
		x.refuse(http.StatusOK, &rpcError{Code: mcp.INTERNAL_ERROR, Message: err.Error()})
	}
}

// Kinds of session keys beside those of stdio.
const (
	kindHTTP   = "m" // Mcp-Session-Id
	kindSSE    = "s" // sessionId of legacy SSE
	sharedKind = "w:"
)

// key says whose call this is: the explicit handle of the request or its URL, the client's id for this call, the
// transport session, and without any of them the workspace, which all conversations of one person share.
func (x *exchange) key() (session.Key, *rpcError) {
	transport := ""
	if x.scope != nil {
		transport = x.scope.key.Session
	}
	return httpKey(x.c.who, x.rec.env, x.handle, transport)
}

func httpKey(who auth.Principal, env envelope, handle, transport string) (session.Key, *rpcError) {
	key := session.Key{Principal: who.ID}
	if env.hasSession && handle != "" && env.session != handle {
		return key, &rpcError{Code: mcp.INVALID_PARAMS, Message: "codehand/session and the handle in the URL differ"}
	}
	if env.hasSession {
		handle = env.session
	}
	switch {
	case env.hasSession || handle != "":
		if !config.Handle(handle) {
			return key, &rpcError{Code: mcp.INVALID_PARAMS, Message: errHandle.Error()}
		}
		key.Session = "h:" + handle
	case env.hasThreadID && config.Conversation(env.threadID):
		key.Session = "t:" + env.threadID
	case transport != "":
		key.Session = transport
	default:
		key.Session = sharedKind + rootsKey(who.Roots)
	}
	return key, nil
}

// dispatch runs the request and sends its answer.
func (x *exchange) dispatch(ctx context.Context, f *flight) {
	rec, e := x.rec, x.e
	entry := &active{who: x.c.who, cancel: func(cause error) {
		if !rec.listens() || !errors.Is(cause, errDraining) { // a listen that the server ends gets its result
			f.state.CompareAndSwap(flightOpen, flightCancelled)
		}
		f.cancel(cause)
	}}
	stream := streams(rec.env.method) && mayStream(x.r.Header["Accept"])
	if rec.listens() && rec.modern {
		if !stream {
			deny(x.w, x.r, notAcceptable())
			return
		}
		entry.kind = "listen"
		end, err := x.c.limits.Stream()
		if err != nil {
			deny(x.w, x.r, e.limited(x.c, "streams", err))
			return
		}
		defer end()
	}
	if err := e.begin(entry); err != nil {
		deny(x.w, x.r, err)
		return
	}
	defer e.work.end(entry)
	began := time.Now()
	w := e.newResponder(x.w, rec, f, stream)
	w.lost = x.gone(f)
	stop := context.AfterFunc(x.r.Context(), w.lost)
	defer stop()

	if rec.env.progressToken != nil && rec.visit != nil && w.stream {
		t := startTicker(e.s.profile(x.clientName()).Beat, func(n note) {
			_ = w.notify(progressNotification(rec.env.progressToken, n)) // a client that is gone needs none
		})
		rec.progress = t.set
		flush := sync.OnceFunc(t.stop)
		rec.flush = flush
		defer flush()
	}
	rec.notify = func(method string, params any) error { return w.tell(method, params) }
	answer, status := x.perform(ctx, w)
	if rec.interrupted && errors.Is(context.Cause(ctx), errDraining) {
		answer, status = errorLine(rec.env.id, &rpcError{Code: mcp.INTERNAL_ERROR, Message: errDraining.Error()}), http.StatusServiceUnavailable
	}
	if rec.hello != nil && x.scope != nil {
		e.https.opened(context.WithoutCancel(ctx), x.scope, rec.hello)
	}
	w.finish(ctx, answer, status)
	x.c.limits.Sent(w.total())
	e.t.metrics.request(rec.env.method, rec.env.name, failure(rec, answer), x.version(), "http", time.Since(began))
}

// perform makes the answer: our own calls without mcp-go in the legacy era, everything else through it.
func (x *exchange) perform(ctx context.Context, w *responder) ([]byte, int) {
	rec, s := x.rec, x.e.s
	if _, ours := s.table[rec.env.name]; rec.visit != nil && ours && !rec.modern {
		return s.dispatch(ctx, rec, x.body), http.StatusOK
	}
	if e := s.refuse(rec); e != nil {
		return errorLine(rec.env.id, e), w.statusOf(e.Code)
	}
	x.through(ctx, w, http.MethodPost, s.slim(rec.env, x.body))
	if rec.flush != nil {
		rec.flush()
	}
	return w.answer(ctx)
}

// run passes a message that is no request to mcp-go.
func (x *exchange) run(f *flight) {
	if f == nil {
		f = &flight{}
	}
	w := x.e.newResponder(x.w, x.rec, f, false)
	x.through(x.r.Context(), w, http.MethodPost, x.body)
	answer, status := w.answer(x.r.Context())
	if status == http.StatusNotFound { // nobody waits for it any more; to a client 404 says that its session is gone
		answer, status = nil, http.StatusAccepted
	}
	w.finish(x.r.Context(), answer, status)
}

// through hands a message to mcp-go. A panic is answered like every other fault of ours.
func (x *exchange) through(ctx context.Context, w *responder, method string, body []byte) {
	defer func() {
		if p := recover(); p != nil {
			x.rec.override = x.e.s.panicked(ctx, p)
		}
	}()
	x.e.stream.Handle(w, &mcpserver.HTTPRequest{
		Method: method, URL: x.r.URL, Header: x.r.Header, Body: body, Context: withRecord(ctx, x.rec),
	})
}

// gone returns what happens when the client is gone: what only reads ends, and in the modern era everything does, since
// that is how its clients cancel. Any other call has time to finish.
func (x *exchange) gone(f *flight) func() {
	return func() {
		cancel := func() {
			if f.state.CompareAndSwap(flightOpen, flightCancelled) {
				f.cancel(errConnection)
			}
		}
		if !f.orphan || x.rec.modern && !x.rec.env.hasCall {
			cancel()
			return
		}
		time.AfterFunc(x.e.s.cfg.HTTP.OrphanGrace, cancel)
	}
}

func (x *exchange) clientName() string {
	if x.rec.client != nil {
		return x.rec.client.Name
	}
	return ""
}

// version is the protocol of the request, for the metrics.
func (x *exchange) version() string {
	switch {
	case x.rec.modern:
		return x.rec.env.version
	case x.rec.client != nil:
		return x.rec.client.Protocol
	}
	return ""
}

// failure is the kind of an error in an answer, for the metrics.
func failure(rec *record, answer []byte) string {
	if rec.override != nil {
		return strconv.Itoa(rec.override.Code)
	}
	head := answer[:min(len(answer), 200+len(rec.env.id))]
	if i := bytes.Index(head, []byte(`,"error":{"code":`)); i >= 0 {
		rest := head[i+len(`,"error":{"code":`):]
		if end := bytes.IndexByte(rest, ','); end > 0 {
			return string(rest[:end])
		}
	}
	return rec.failed
}

// streams says whether the answer to a method may be an event stream.
func streams(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodCompletionComplete, mcp.MethodSubscriptionsListen:
		return true
	}
	return false
}

func notAcceptable() *auth.Error {
	return &auth.Error{Status: http.StatusNotAcceptable, Code: "not_acceptable", Message: "a stream needs Accept: text/event-stream"}
}

// get opens the stream of a legacy session for messages that answer nothing.
func (e *httpEndpoint) get(w http.ResponseWriter, r *http.Request, c caller) {
	if r.Header.Get(headerVersion) >= firstModern {
		w.Header().Set("Allow", http.MethodPost)
		deny(w, r, &auth.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this protocol version has no GET; use subscriptions/listen"})
		return
	}
	if !mayStream(r.Header["Accept"]) {
		deny(w, r, notAcceptable())
		return
	}
	s, err := e.session(r, c)
	if err != nil {
		deny(w, r, err)
		return
	}
	defer e.https.release(s)
	end, err := c.limits.Stream()
	if err != nil {
		deny(w, r, e.limited(c, "streams", err))
		return
	}
	defer end()
	ctx, cancel := context.WithCancelCause(e.base)
	defer cancel(nil)
	entry := &active{who: c.who, kind: "get", session: s.id, cancel: cancel}
	if err := e.begin(entry); err != nil {
		deny(w, r, err)
		return
	}
	defer e.work.end(entry)
	f := &flight{cancel: cancel}
	x := &exchange{e: e, w: w, r: r, c: c, rec: &record{newID: s.id, client: s.client.Load()}, scope: s}
	out := e.newResponder(w, x.rec, f, true)
	out.lost = func() { cancel(errConnection) }
	stop := context.AfterFunc(r.Context(), out.lost)
	defer stop()
	x.through(ctx, out, http.MethodGet, nil)
	out.end(ctx)
	c.limits.Sent(out.total())
}

// delete ends a legacy session for good.
func (e *httpEndpoint) delete(w http.ResponseWriter, r *http.Request, c caller) {
	if r.Header.Get(headerVersion) >= firstModern {
		w.Header().Set("Allow", http.MethodPost)
		deny(w, r, &auth.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this protocol version has no sessions"})
		return
	}
	s, err := e.session(r, c)
	if err != nil {
		deny(w, r, err)
		return
	}
	defer e.https.release(s)
	if err := e.https.forget(r.Context(), e, s); err != nil {
		e.log.Error("a session cannot be ended", "err", err)
		deny(w, r, &auth.Error{Status: http.StatusServiceUnavailable, Code: "store_unavailable", Message: "the state store does not answer", RetryAfter: time.Second})
		return
	}
	w.WriteHeader(http.StatusOK)
}

// A streamSession is what mcp-go's session of a modern request can do that we pass on. That it can hold tools is left
// out: the store behind that is one for all users.
type streamSession interface {
	mcpserver.ClientSession
	mcpserver.SessionWithClientInfo
	mcpserver.SessionWithSubscriptionFilter
	mcpserver.SessionWithStreamableHTTPConfig
}

// A requestSession is the session of one modern request, with an id of its own: mcp-go gives all of them the id "".
type requestSession struct {
	streamSession
	id string
}

func (s requestSession) SessionID() string { return s.id }

// modernSession replaces mcp-go's session of a modern request.
func (e *httpEndpoint) modernSession(ctx context.Context, _ *http.Request) context.Context {
	s, ok := mcpserver.ClientSessionFromContext(ctx).(streamSession)
	if !ok || s.SessionID() != "" {
		return ctx
	}
	return e.s.mcp.WithContext(ctx, requestSession{s, "req-" + newID()})
}
