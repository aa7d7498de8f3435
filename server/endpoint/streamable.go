package endpoint

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/sessions"
	"codehand/tools/results"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// post serves one message of Streamable HTTP.
func (e *Endpoint) post(w http.ResponseWriter, r *http.Request, c caller, handle string) {
	body, bad := e.body(w, r, c)
	if bad != nil {
		deny(w, r, bad)
		return
	}
	env, fault := jsonrpc.Scan(body)
	x := &exchange{
		e: e, w: w, r: r, c: c, env: env, body: body, handle: handle,
		modern: env.Modern() || r.Header.Get(headerVersion) >= jsonrpc.FirstModern,
	}
	if fault != nil {
		x.malformed(fault)
		return
	}
	if err := e.o.Team.SignIn.Lacking(r, c.who, env); err != nil {
		e.o.Team.Refused(c.ip, err)
		deny(w, r, err)
		return
	}
	x.serve()
}

// session finds the legacy session of a request.
func (e *Endpoint) session(r *http.Request, c caller) (*httpSession, error) {
	ids := r.Header.Values(headerSession)
	if len(ids) != 1 || ids[0] == "" {
		return nil, &auth.Error{Status: http.StatusBadRequest, Code: "session_required",
			Message: headerSession + " required: send the " + headerSession + " of the answer to initialize"}
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
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "draining", Message: errDraining.Error(),
		RetryAfter: 5 * time.Second}
}

func storeDown() *auth.Error {
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "store_unavailable",
		Message: "the state store does not answer", RetryAfter: time.Second}
}

func onlyPost(instead string) *auth.Error {
	return &auth.Error{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
		Message: "this protocol version has " + instead}
}

func badHandle() *auth.Error {
	return &auth.Error{Status: http.StatusBadRequest, Code: "bad_handle", Message: sessions.ErrHandle.Error()}
}

func notAcceptable() *auth.Error {
	return &auth.Error{Status: http.StatusNotAcceptable, Code: "not_acceptable",
		Message: "a stream needs Accept: text/event-stream"}
}

// get opens the stream of a legacy session for messages that answer nothing.
func (e *Endpoint) get(w http.ResponseWriter, r *http.Request, c caller) {
	version := r.Header.Get(headerVersion)
	if version >= jsonrpc.FirstModern {
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
	if version != "" && !slices.Contains(e.o.Versions, version) {
		x := &exchange{w: w, r: r}
		x.refuse(http.StatusBadRequest, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: results.Line("Unsupported protocol version: "+version, 300),
		})
		return
	}
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
	left := func() { cancel(jsonrpc.ErrClosed) }
	out := e.newResponder(w, c.limits, &jsonrpc.Flight{Cancel: cancel}, true, left)
	stop := context.AfterFunc(r.Context(), left)
	defer stop()
	key := sessions.Sealed(c.who, s.key)
	defer e.o.Follow(key, &peer{w: out, gone: ctx.Done()})() // first: who sees the stream open misses nothing
	out.begin()
	<-ctx.Done()
	out.end()
}

// delete ends a legacy session for good.
func (e *Endpoint) delete(w http.ResponseWriter, r *http.Request, c caller) {
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
	if err := e.sessions.forget(r.Context(), s); err != nil {
		e.o.Log.Error("a session cannot be ended", "err", err)
		deny(w, r, storeDown())
		return
	}
	w.WriteHeader(http.StatusOK)
}
