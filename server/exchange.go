package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/auth"
	"codehand/server/jsonrpc"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// An exchange is one POST from its envelope to its answer.
type exchange struct {
	e      *httpEndpoint
	w      http.ResponseWriter
	r      *http.Request
	c      caller
	body   []byte
	handle string // in the URL; "": none
	rec    *record
	own    session.Key  // whose request it is
	scope  *httpSession // of a legacy request; else nil
	out    *responder   // of a call; else nil
}

// refuse answers without mcp-go. A notification has no id, so its error has none.
func (x *exchange) refuse(status int, e *jsonrpc.Error) {
	x.reply(status, refusalBody(x.rec.env.ID, e))
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
func (x *exchange) malformed(fault *jsonrpc.Fault) {
	env, s := x.rec.env, x.e.s
	switch {
	case fault.InArguments && env.IDKind != jsonrpc.IDNone:
		result := s.describeError(unusable(env.Name, fault), env.Name)
		x.reply(http.StatusOK, s.encode(x.r.Context(), x.rec, s.decorate(env, result)))
	case env.IDKind == jsonrpc.IDNone:
		x.refuse(http.StatusBadRequest, fault.Answer())
	default:
		x.reply(http.StatusBadRequest, jsonrpc.ErrorLine(env.ID, fault.Answer()))
	}
}

// legacy serves a message of a session, or the initialize that begins one.
func (x *exchange) legacy(isAnswer bool) {
	e, env := x.e, x.rec.env
	if v := x.r.Header.Get(headerVersion); v != "" && env.Method != string(mcp.MethodInitialize) && !slices.Contains(e.s.versions, v) {
		x.refuse(http.StatusBadRequest, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: headerVersion + " names a version that is not served; there are " + strings.Join(e.s.versions, ", ")})
		return
	}
	var err error
	begins := env.Method == string(mcp.MethodInitialize) && env.IDKind != jsonrpc.IDNone
	if begins {
		x.scope, err = e.sessions.start(x.c.who)
	} else {
		x.scope, err = e.session(x.r, x.c)
	}
	if errors.Is(err, errTooManySessions) {
		err = &auth.Error{Status: http.StatusServiceUnavailable, Code: "too_many_sessions", Message: err.Error(), RetryAfter: time.Minute}
	}
	if err != nil {
		deny(x.w, x.r, err)
		return
	}
	defer func() {
		e.sessions.release(x.scope)
		if begins && x.rec.hello == nil {
			e.sessions.drop(e, x.scope)
		}
	}()
	x.rec.client, x.rec.prompts, x.rec.roots = x.scope.client.Load(), &x.scope.prompts, &x.scope.roots
	x.rec.newID = x.scope.id
	switch {
	case isAnswer:
		x.pass()
	case env.IDKind == jsonrpc.IDNone:
		x.notification()
		x.w.WriteHeader(http.StatusAccepted)
	default:
		x.request()
	}
}

// notification takes one of a session. Roots are asked for by the next call: nothing may be sent on this one's answer.
func (x *exchange) notification() {
	switch env := x.rec.env; env.Method {
	case noteCancelled:
		if env.RequestID != nil {
			x.scope.table.Cancel(env.RequestID, jsonrpc.ErrCancelled)
		}
	case noteRootsChanged:
		if x.rec.client != nil && x.rec.client.HasRoots {
			x.scope.roots.changed()
		}
	}
}

// keepRoots keeps what the client said of its roots, for its requests after a restart.
func (x *exchange) keepRoots(ctx context.Context, said []string) {
	c := *x.scope.client.Load()
	c.Roots = said
	x.scope.client.Store(&c)
	if err := x.e.s.remember(context.WithoutCancel(ctx), x.scope.key, &c); err != nil {
		x.e.log.Warn("a client record cannot be kept", "err", err)
	}
}

// modern serves a message that has no session.
func (x *exchange) modern(isAnswer bool) {
	env := x.rec.env
	switch {
	case isAnswer:
		x.pass() // mcp-go refuses it
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

// name enters a call under its name, by which it can be cancelled. A call that has it already keeps it while it waits for its
// answer; after that its client may use the name again, before the call is gone from here.
func (e *httpEndpoint) name(name string, f *jsonrpc.Flight) {
	for {
		other, taken := e.named.LoadOrStore(name, f)
		if !taken || other.(*jsonrpc.Flight).Waits() || e.named.CompareAndSwap(name, other, f) {
			return
		}
	}
}

// request enters a request in the table of its session, takes its ticket, and runs it.
func (x *exchange) request() {
	e, env := x.e, x.rec.env
	ctx, cancel := context.WithCancelCause(e.base)
	defer cancel(nil)
	f := e.s.flight(x.rec, cancel)
	if x.scope != nil {
		if err := x.scope.table.Add(f); err != nil {
			x.full(err)
			return
		}
		defer x.scope.table.Done(f)
	}
	if env.HasCall {
		name := namedCall(x.c.who, env.Call)
		e.name(name, f)
		defer e.named.CompareAndDelete(name, f) // by then it may be that of another one
	}
	release := func() {}
	defer func() { release() }()
	key, bad := x.key()
	x.own = key
	switch {
	case bad != nil:
	case f.Call:
		if x.rec.env.Named() && x.scope != nil {
			x.rec.shelf, _ = httpKey(x.c.who, x.rec.env.Unnamed(), x.handle, x.scope.key.Session) // it erred for key, if it does
		}
		bad = e.s.arrive(x.rec, key, &release)
	case x.rec.listsActive():
		x.rec.shelf = key
	case needsSession(env.Method):
		bad = e.s.look(x.rec, key, &release)
	}
	if bad != nil {
		status := http.StatusOK
		if x.rec.modern && bad.Code == mcp.INVALID_PARAMS {
			status = http.StatusBadRequest
		}
		x.refuse(status, bad)
		return
	}
	if x.rec.prompts == nil {
		x.rec.prompts = e.s.sessions.promptMark(key, x.rec.place)
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
	case errors.Is(err, jsonrpc.ErrClosed): // its session was deleted meanwhile
		deny(x.w, x.r, unknownSession())
	case errors.Is(err, jsonrpc.ErrIDInUse):
		x.refuse(http.StatusOK, &jsonrpc.Error{Code: mcp.INVALID_REQUEST, Message: err.Error()})
	case x.rec.env.Method == string(mcp.MethodToolsCall):
		refusal := tool.Refuse(tool.Busy, "%d calls are in flight in this session. Nothing was done. Try again when some are answered.", jsonrpc.MaxInFlight)
		s := x.e.s
		x.reply(http.StatusOK, s.encode(x.r.Context(), x.rec, s.decorate(x.rec.env, s.describeError(refusal, x.rec.env.Name))))
	default:
		x.refuse(http.StatusOK, &jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: err.Error()})
	}
}

// dispatch runs the request and sends its answer.
func (x *exchange) dispatch(ctx context.Context, f *jsonrpc.Flight) {
	rec, e := x.rec, x.e
	entry := &active{who: x.c.who, cancel: func(cause error) {
		if rec.listens() && errors.Is(cause, errDraining) { // a listen that the server ends gets its result
			f.Cancel(cause)
		} else {
			f.Abort(cause)
		}
	}}
	stream := streams(rec.env.Method) && mayStream(x.r.Header["Accept"])
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
	left := x.left(ctx, f)
	w := e.newResponder(x.w, rec, f, stream, left)
	stop := context.AfterFunc(x.r.Context(), left)
	defer stop()
	rec.gone = func() bool { return x.r.Context().Err() != nil } // left has a goroutine of its own, which may come late

	if rec.env.ProgressToken != nil && rec.visit != nil && w.stream {
		t := startTicker(e.s.profile(x.clientName()).Beat, func(n note) {
			_ = w.notify(progressNotification(rec.env.ProgressToken, n)) // a client that is gone needs none
		})
		rec.progress = t.set
		flush := sync.OnceFunc(t.stop)
		rec.flush = flush
		defer flush()
	}
	rec.notify = func(method string, params any) error { return w.tell(method, params) }
	rec.announce = func(method string) { e.announce(x.own, method) }
	if rec.listens() && heeds(x.body) {
		e.heeding.Store(w, x.own)
		defer e.heeding.Delete(w)
	}
	answer, status := x.perform(ctx, w)
	if rec.interrupted && errors.Is(context.Cause(ctx), errDraining) {
		answer, status = rec.fail(&jsonrpc.Error{Code: mcp.INTERNAL_ERROR, Message: errDraining.Error()}), http.StatusServiceUnavailable
	}
	if f.First && x.scope != nil && rec.hello == nil {
		e.sessions.drop(e, x.scope) // before the answer: at the limit its client begins the next one at once
	}
	if rec.hello != nil && x.scope != nil {
		e.sessions.opened(context.WithoutCancel(ctx), x.scope, rec.hello)
		if !rec.askable { // mcp-go's objects hold what the client can be asked, and half of a session's memory; the rest it makes again
			e.free(x.scope.id)
		}
	}
	e.t.metrics.Request(rec.env.Method, rec.called(), rec.failed, x.version(), "http", time.Since(began)) // who has the answer may look
	w.finish(ctx, answer, status)
}

// perform makes the answer: our own calls without mcp-go in the legacy era, everything else through it.
func (x *exchange) perform(ctx context.Context, w *responder) ([]byte, int) {
	rec, s := x.rec, x.e.s
	if _, ours := s.table[rec.env.Name]; rec.visit != nil && ours && !rec.modern {
		if w.stream && rec.client != nil {
			x.out = w
			if rec.client.CanAsk {
				rec.to = x
			}
			if rec.client.HasRoots {
				rec.rootsTo, rec.rootsSaid = x, x.keepRoots
			}
		}
		return s.dispatch(ctx, rec, x.body), http.StatusOK
	}
	if e := s.refuse(rec); e != nil {
		return rec.fail(e), w.statusOf(e.Code)
	}
	x.through(ctx, w, http.MethodPost, s.slim(rec.env, x.body))
	if rec.flush != nil {
		rec.flush()
	}
	return w.answer(ctx)
}

// pass hands an answer of the client to the call that asked: ours, or one of mcp-go.
func (x *exchange) pass() {
	if id := x.rec.env.ID; x.scope != nil && isOwnID(id) {
		x.scope.asks.answer(id, x.body) // one that nobody waits for any more is dropped
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	ctx := x.r.Context()
	w := x.e.newResponder(x.w, x.rec, &jsonrpc.Flight{}, false, func() {})
	x.through(ctx, w, http.MethodPost, x.body)
	answer, status := w.answer(ctx)
	if status == http.StatusNotFound { // nobody waits for it any more; to a client 404 says that its session is gone
		answer, status = nil, http.StatusAccepted
	}
	w.finish(ctx, answer, status)
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

// left returns what happens when the client has left: what only reads ends, and in the modern era everything does, since
// that is how its clients cancel. Any other call has time to finish. ctx is that of the call.
func (x *exchange) left(ctx context.Context, f *jsonrpc.Flight) func() {
	return sync.OnceFunc(func() {
		if !f.Orphan || x.rec.modern && !x.rec.env.HasCall {
			f.Abort(jsonrpc.ErrClosed)
			return
		}
		x.rec.lost.Store(true)
		grace := time.AfterFunc(x.e.s.cfg.HTTP.OrphanGrace, func() { f.Abort(jsonrpc.ErrClosed) })
		context.AfterFunc(ctx, func() { grace.Stop() }) // it would hold the body
	})
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
		return x.rec.env.Version
	case x.rec.client != nil:
		return x.rec.client.Protocol
	}
	return ""
}

// streams says whether the answer to a method may be an event stream.
func streams(method string) bool {
	switch mcp.MCPMethod(method) {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet, mcp.MethodResourcesRead, mcp.MethodCompletionComplete, mcp.MethodSubscriptionsListen:
		return true
	}
	return false
}

// key says whose call this is: the explicit handle of the request or its URL, the client's id for this call, the
// transport session, and without any of them the workspace, which all conversations of one person share.
func (x *exchange) key() (session.Key, *jsonrpc.Error) {
	transport := ""
	if x.scope != nil {
		transport = x.scope.key.Session
	}
	return httpKey(x.c.who, x.rec.env, x.handle, transport)
}
