package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
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
	env, fault := jsonrpc.Scan(body)
	x := &exchange{e: e, w: w, r: r, c: c, body: body, handle: handle}
	x.rec = &record{
		env: env, limits: c.limits, modern: env.Modern() || r.Header.Get(headerVersion) >= jsonrpc.FirstModern,
		from: pipeline.From{Auth: c.who.Via, Transport: "http", Era: env.Era(), IP: c.ip},
	}
	if fault != nil {
		x.malformed(fault)
		return
	}
	isAnswer := env.Method == "" && (env.HasResult || env.HasError)
	if !isAnswer && (env.Method == "" || env.HasResult || env.HasError) {
		x.refuse(http.StatusBadRequest, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: "neither a request nor an answer"})
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

// session finds the legacy session of a request.
func (e *httpEndpoint) session(r *http.Request, c caller) (*httpSession, error) {
	ids := r.Header.Values(headerSession)
	if len(ids) != 1 || ids[0] == "" {
		return nil, &auth.Error{Status: http.StatusBadRequest, Code: "session_required", Message: headerSession + " required"}
	}
	x, err := e.sessions.acquire(r.Context(), c.who, ids[0])
	if errors.Is(err, errNoSession) {
		err = unknownSession()
	}
	return x, err
}

// The refusals that have several reasons.

func unknownSession() *auth.Error {
	return &auth.Error{Status: http.StatusNotFound, Code: "not_found", Message: noSession}
}

func draining() *auth.Error {
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "draining", Message: errDraining.Error(), RetryAfter: 5 * time.Second}
}

func storeDown() *auth.Error {
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "store_unavailable", Message: "the state store does not answer", RetryAfter: time.Second}
}

func onlyPost(instead string) *auth.Error {
	return &auth.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "this protocol version has " + instead}
}

func badHandle() *auth.Error {
	return &auth.Error{Status: http.StatusBadRequest, Code: "bad_handle", Message: errHandle.Error()}
}

func notAcceptable() *auth.Error {
	return &auth.Error{Status: http.StatusNotAcceptable, Code: "not_acceptable", Message: "a stream needs Accept: text/event-stream"}
}

// get opens the stream of a legacy session for messages that answer nothing.
func (e *httpEndpoint) get(w http.ResponseWriter, r *http.Request, c caller) {
	if r.Header.Get(headerVersion) >= jsonrpc.FirstModern {
		w.Header().Set("Allow", http.MethodPost)
		deny(w, r, onlyPost("no GET; use subscriptions/listen"))
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
	defer e.sessions.release(s)
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
	e.sessions.hold(s, entry)
	defer e.leave(s, entry)
	f := &jsonrpc.Flight{Cancel: cancel}
	x := &exchange{e: e, w: w, r: r, c: c, rec: &record{newID: s.id, limits: c.limits, client: s.client.Load()}, scope: s}
	left := func() { cancel(jsonrpc.ErrClosed) }
	out := e.newResponder(w, x.rec, f, true, left)
	stop := context.AfterFunc(r.Context(), left)
	defer stop()
	x.through(ctx, out, http.MethodGet, nil)
	out.end(ctx)
}

// leave ends a stream of a session. mcp-go knows a session by the first of its streams: when that ends, it sends nothing
// to the others any more. So they end, too, and their clients come back.
func (e *httpEndpoint) leave(s *httpSession, entry *active) {
	if e.sessions.unhold(s, entry) {
		e.work.cancelIf(func(a *active) bool { return a.session == s.id && a != entry }, errDeaf)
	}
}

// errDeaf is the cause of a cancel when a stream would get nothing any more.
var errDeaf = errors.New("the session's first stream has ended")

// delete ends a legacy session for good.
func (e *httpEndpoint) delete(w http.ResponseWriter, r *http.Request, c caller) {
	if r.Header.Get(headerVersion) >= jsonrpc.FirstModern {
		w.Header().Set("Allow", http.MethodPost)
		deny(w, r, onlyPost("no sessions"))
		return
	}
	s, err := e.session(r, c)
	if err != nil {
		deny(w, r, err)
		return
	}
	defer e.sessions.release(s)
	if err := e.sessions.forget(r.Context(), e, s); err != nil {
		e.log.Error("a session cannot be ended", "err", err)
		deny(w, r, storeDown())
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
