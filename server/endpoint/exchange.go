package endpoint

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// The methods that the endpoint itself must know.
const (
	methodInitialize = "initialize"
	methodCall       = "tools/call"
	methodListen     = "subscriptions/listen"

	noteCancelled    = "notifications/cancelled"
	noteRootsChanged = "notifications/roots/list_changed"
)

// An exchange is one POST from its envelope to its answer.
type exchange struct {
	e      *Endpoint
	w      http.ResponseWriter
	r      *http.Request
	c      caller
	env    jsonrpc.Envelope
	body   []byte
	handle string // in the URL; "": none
	modern bool   // the body or the Mcp-Protocol-Version header names protocol 2026-07-28 or later
	tenant *tenants.Tenant
	scope  *httpSession // of a legacy request; else nil
}

// refuse answers without the server. A notification has no id, so its error has none.
func (x *exchange) refuse(status int, e *jsonrpc.Error) {
	x.reply(status, refusalBody(x.env.ID, e))
}

func (x *exchange) reply(status int, body []byte) {
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body) // a client that is gone needs no answer
}

// malformed answers a message that failed the scan. A fault in the arguments of a call becomes a tool result, so that
// the model can correct it; any other fault is a JSON-RPC error.
func (x *exchange) malformed(fault *jsonrpc.Fault) {
	switch {
	case fault.InArguments && x.env.IDKind != jsonrpc.IDNone:
		o := x.e.o
		x.reply(http.StatusOK, o.Refuse(x.env, x.env.Modern(), o.Unusable(x.env.Name, fault)).Line(x.env.ID))
	case x.env.IDKind == jsonrpc.IDNone:
		x.refuse(http.StatusBadRequest, fault.Answer())
	default:
		x.reply(http.StatusBadRequest, jsonrpc.ErrorLine(x.env.ID, fault.Answer()))
	}
}

// serve serves a message that passed the scan.
func (x *exchange) serve() {
	env := x.env
	isAnswer := env.Method == "" && (env.HasResult || env.HasError)
	if !isAnswer && (env.Method == "" || env.HasResult || env.HasError) {
		x.refuse(http.StatusBadRequest,
			&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "neither a request nor an answer"})
		return
	}
	var err error
	if x.tenant, err = x.e.o.Tenants.Of(x.c.who); err != nil {
		x.refuse(http.StatusOK, x.e.o.Report(x.r.Context(), "place", err))
		return
	}
	if x.modern {
		x.serveModern(isAnswer)
	} else {
		x.serveLegacy(isAnswer)
	}
}

// serveLegacy serves a message of a session, or the initialize that begins one.
func (x *exchange) serveLegacy(isAnswer bool) {
	e, env := x.e, x.env
	begins := env.Method == methodInitialize && env.IDKind != jsonrpc.IDNone
	if v := x.r.Header.Get(headerVersion); v != "" && env.Method != methodInitialize &&
		!slices.Contains(e.o.Versions, v) {
		x.refuse(http.StatusBadRequest, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest,
			Message: headerVersion + " names a version that is not served; there are " + strings.Join(e.o.Versions,
				", "),
		})
		return
	}
	var err error
	if begins {
		x.scope, err = e.sessions.start(x.c.who)
	} else {
		x.scope, err = e.session(x.r, x.c)
	}
	if errors.Is(err, errTooManySessions) {
		err = &auth.Error{
			Status: http.StatusServiceUnavailable, Code: "too_many_sessions", Message: err.Error(),
			RetryAfter: time.Minute,
		}
	}
	if err != nil {
		deny(x.w, x.r, err)
		return
	}
	defer func() {
		e.sessions.release(x.scope)
		if begins {
			e.sessions.drop(x.scope) // unless it was initialized
		}
	}()
	switch {
	case isAnswer:
		x.scope.asks.Answer(env.ID, x.body) // one that no question waits for any more is dropped
		x.w.WriteHeader(http.StatusAccepted)
	case env.IDKind == jsonrpc.IDNone:
		x.notification()
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.request()
	}
}

// notification handles a notification of a legacy session. If the roots changed, the next call asks for them: nothing
// can be sent in the response to a notification.
func (x *exchange) notification() {
	switch env := x.env; env.Method {
	case noteCancelled:
		if env.RequestID != nil {
			x.scope.table.Cancel(env.RequestID, jsonrpc.ErrCancelled)
		}
	case noteRootsChanged:
		if client := x.scope.client.Load(); client != nil && client.HasRoots {
			x.scope.roots.Changed()
		}
	}
}

// serveModern serves a message that has no session.
func (x *exchange) serveModern(isAnswer bool) {
	env := x.env
	switch {
	case isAnswer:
		x.refuse(http.StatusBadRequest, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest,
			Message: "client-to-server responses are not supported in protocol version " + jsonrpc.FirstModern +
				": server-initiated requests were replaced by multi round-trip requests",
		})
	case env.IDKind == jsonrpc.IDNone:
		if env.Method == noteCancelled && env.HasCall {
			if f, ok := x.e.named.Load(namedCall(x.c.who, env.Call)); ok {
				f.(*jsonrpc.Flight).Abort(jsonrpc.ErrCancelled)
			}
		}
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.request()
	}
}

// namedCall is the name under which a client may cancel a call of its own from another connection.
func namedCall(who auth.Principal, call string) string { return who.ID + "\x00" + call }

// name registers f under a name by which it can be cancelled. A flight that still waits for its answer keeps its name;
// one that was answered or cancelled loses it.
func (e *Endpoint) name(name string, f *jsonrpc.Flight) {
	for {
		other, taken := e.named.LoadOrStore(name, f)
		if !taken || other.(*jsonrpc.Flight).Waits() || e.named.CompareAndSwap(name, other, f) {
			return
		}
	}
}

// headersAgree compares the headers of a modern request with its body. If they differ, it answers the request and
// counts it, since the server never sees it.
func (x *exchange) headersAgree() bool {
	o, env, began := x.e.o, x.env, time.Now()
	bad := o.CheckHeaders(env, x.body, x.r.Header)
	if bad == nil {
		return true
	}
	o.Team.Metrics.Request(env.Method, env.Name, strconv.Itoa(bad.Code), env.Version, "http", time.Since(began))
	x.refuse(statusOf(true, bad.Code), bad)
	return false
}

// request adds a request to the table of its session, passes it to Serve, runs it, and sends its answer.
func (x *exchange) request() {
	e, env := x.e, x.env
	ctx, cancel := context.WithCancelCause(e.base)
	defer cancel(nil)
	f := &jsonrpc.Flight{
		ID: env.ID, Call: env.Method == methodCall, First: env.Method == methodInitialize && !x.modern, Cancel: cancel,
		Stream: x.modern && env.Method == methodListen,
	}
	if x.scope != nil {
		switch err := x.scope.table.Add(f); {
		case err == nil:
			defer x.scope.table.Done(f)
		case errors.Is(err, jsonrpc.ErrIDInUse) && env.Repeatable():
			// a proxy sent it again: it waits for the first one, whose cancel counts for both
		default:
			x.full(err)
			return
		}
	}
	if env.HasCall {
		name := namedCall(x.c.who, env.Call)
		e.name(name, f)
		defer e.named.CompareAndDelete(name, f) // by then another call may have the name
	}
	key, err := x.key(env)
	if err != nil { // also if the answer does not depend on the session: the client sent a malformed handle
		x.refuse(statusOf(x.modern, jsonrpc.CodeInvalidParams),
			&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()})
		return
	}
	if x.modern && !x.headersAgree() {
		return
	}
	stream := streams(env.Method) && mayStream(x.r.Header["Accept"])
	entry := x.entry(f)
	if f.Stream {
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
	gone, leave := context.WithCancel(x.r.Context())
	defer leave()
	left := x.left(ctx, f)
	// the responder calls this function with its lock held, so left runs in its own goroutine
	w := e.newResponder(x.w, x.c.limits, f, stream, func() { leave(); go left() })
	work, changes := e.o.Serve(x.newRequest(key, &peer{w: w, gone: gone.Done(), scope: x.scope}, stream))
	f.Orphan.Store(changes)
	stop := context.AfterFunc(x.r.Context(), left)
	defer stop()
	answer := work(ctx)
	defer answer.WasSent()
	x.initialized(ctx, f, w, answer)
	status := http.StatusOK
	if answer.Err != nil {
		status = statusOf(x.modern, answer.Err.Code)
	}
	if failed, as := stopped(ctx, answer); failed != nil && !(f.Stream && as == http.StatusUnauthorized) {
		status, answer = as, request.Answer{Err: failed}
	}
	w.finish(ctx, answer.Line(env.ID), status)
}

// stopped is what a request is answered in place of its answer where the server ends, or its token was revoked.
func stopped(ctx context.Context, answer request.Answer) (*jsonrpc.Error, int) {
	switch cause := context.Cause(ctx); {
	case (answer.Interrupted || answer.Err != nil) && errors.Is(cause, errDraining):
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: errDraining.Error()}, http.StatusServiceUnavailable
	case errors.Is(cause, errRevoked): // whatever it had found
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: "the token was revoked while this call ran; it was stopped",
			Data:    map[string]string{"code": "invalid_token"}}, http.StatusUnauthorized
	}
	return nil, 0
}

// entry is the request among all that are open.
func (x *exchange) entry(f *jsonrpc.Flight) *active {
	return &active{who: x.c.who, cancel: func(cause error) {
		if f.Stream && errors.Is(cause, errDraining) { // a listen that the server ends gets its result
			f.Cancel(cause)
		} else {
			f.Abort(cause)
		}
	}}
}

// newRequest builds the Request for Serve.
func (x *exchange) newRequest(key session.Key, p *peer, stream bool) request.Request {
	r := request.Request{
		Envelope: x.env, Message: x.body, Tenant: x.tenant, Session: key, Peer: p,
		Client: request.Client{Modern: x.modern}, Relayed: x.c.relayed,
		Caller: request.Caller{Limits: x.c.limits, From: x.c.from("http", x.env.Era())},
	}
	if x.scope != nil {
		r.Client.Muted, r.Client.Roots, r.Client.Prompts = !stream, &x.scope.roots, &x.scope.prompts
		if client := x.scope.client.Load(); client != nil {
			r.Client.ClientRecord = *client
		}
		r.Shelf, _ = x.key(x.env.Unnamed()) // no error: x.key(x.env) would have failed before
	}
	return r
}

// initialized stores what the client said in initialize, or drops the session if that failed. It runs before the answer
// is sent: a client at its session limit may try again as soon as it has the answer.
func (x *exchange) initialized(ctx context.Context, f *jsonrpc.Flight, w *responder, answer request.Answer) {
	switch {
	case !f.First || x.scope == nil:
	case answer.Client == nil:
		x.e.sessions.drop(x.scope)
	default:
		x.e.sessions.opened(context.WithoutCancel(ctx), x.scope, answer.Client)
		w.session = x.scope.id
	}
}

// full answers a request that the table does not take.
func (x *exchange) full(err error) {
	switch {
	case errors.Is(err, jsonrpc.ErrClosed): // its session was deleted meanwhile
		deny(x.w, x.r, unknownSession())
	case errors.Is(err, jsonrpc.ErrIDInUse):
		x.refuse(http.StatusOK, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()})
	case x.env.Method == methodCall:
		refusal := tool.Refuse(tool.Busy, "%d calls are in flight in this session. Nothing was done. "+
			"Try again when some are answered.", jsonrpc.MaxInFlight)
		x.reply(http.StatusOK, x.e.o.Refuse(x.env, false, refusal).Line(x.env.ID))
	default:
		x.refuse(http.StatusOK, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()})
	}
}

// left returns the function to call when the client has gone. It cancels a call that only reads, and a modern call,
// since modern clients cancel by closing the stream. Other calls have http.orphan_grace to finish. So has a modern call
// with a codehand/call id: its client can cancel it by a notification instead. ctx is that of the call.
func (x *exchange) left(ctx context.Context, f *jsonrpc.Flight) func() {
	return sync.OnceFunc(func() {
		if !f.Orphan.Load() || x.modern && !x.env.HasCall {
			f.Abort(jsonrpc.ErrClosed)
			return
		}
		grace := time.AfterFunc(x.e.o.HTTP.OrphanGrace, func() { f.Abort(jsonrpc.ErrClosed) })
		context.AfterFunc(ctx, func() { grace.Stop() }) // otherwise the timer would keep the request body in memory
	})
}

// streams reports whether the answer to a method may be an event stream.
func streams(method string) bool {
	switch method {
	case methodCall, "prompts/get", "resources/read", "completion/complete", methodListen:
		return true
	}
	return false
}

// key returns the session of a request. That is the first one present of the handle in the request or its URL, the
// client's conversation id (threadId or openai/session), and the transport session, unless the client opens one for
// each call. Without any, all requests of a principal with the same roots share one session.
func (x *exchange) key(env jsonrpc.Envelope) (session.Key, error) {
	transport := ""
	if x.scope != nil && !x.e.sessions.reopens(x.scope) {
		transport = x.scope.key.Session
	}
	return sessions.HTTPKey(x.c.who, env, x.handle, transport)
}

// statusOf maps a JSON-RPC error to an HTTP status. Legacy errors are always 200; the modern protocol defines others,
// so that proxies need not read the body.
func statusOf(modern bool, code int) int {
	if !modern {
		return http.StatusOK
	}
	switch code {
	case jsonrpc.CodeInvalidParams, codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion,
		jsonrpc.CodeInvalidRequest, jsonrpc.CodeParseError:
		return http.StatusBadRequest
	case codeMethodNotFound:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// Codes of JSON-RPC and of protocol 2026-07-28 that have a status of their own.
const (
	codeMethodNotFound     = -32601
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)
