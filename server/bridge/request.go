package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/stdio"
)

// lingers is how long a stream is read after it brought the answer: its connection can be used again when it ended.
const lingers = 100 * time.Millisecond

// steady is how long a stream must have been open for its end to count as the first failure.
const steady = 5 * time.Second

// A request is one request of the client.
type request struct {
	jsonrpc.Flight
	env       jsonrpc.Envelope
	swallowed bool // the client does not get the answer: it did not ask

	stop  context.CancelCauseFunc // ends what runs for it
	gone  chan struct{}           // closed when the client has cancelled it
	ended chan struct{}           // closed when nothing runs for it any more

	// Of the goroutine that runs it.
	renewed   bool   // a lost session was replaced for it
	acked     bool   // a listen was acknowledged to the client
	opened    bool   // the last attempt was answered with 2xx
	sessionID string // of the endpoint's answer

	mu   sync.Mutex
	msg  []byte // as it is posted
	key  string // its codehand/call, by which the endpoint knows it again; "": none
	sent bool   // the endpoint may have it
}

// modern says that the request belongs to no session.
func (r *request) modern() bool { return r.env.Version >= mcp.ProtocolVersion20260728 }

func (r *request) listen() bool {
	return r.modern() && r.env.Method == string(mcp.MethodSubscriptionsListen)
}

// repeatable says whether the request may be sent again when its outcome is unknown.
func (r *request) repeatable() bool { return !r.Call || r.key != "" }

// request takes a request in its turn and runs it.
func (b *bridge) request(env jsonrpc.Envelope, msg []byte) {
	ctx, stop := context.WithCancelCause(b.ctx)
	r := &request{env: env, msg: msg, stop: stop, gone: make(chan struct{}), ended: make(chan struct{})}
	r.ID, r.Call = env.ID, env.Method == string(mcp.MethodToolsCall)
	r.Cancel = func(cause error) {
		if errors.Is(cause, jsonrpc.ErrCancelled) {
			close(r.gone) // the endpoint must hear of it first
			return
		}
		stop(cause)
	}
	if err := b.table.Add(&r.Flight); err != nil {
		stop(nil)
		b.say(b.o.full(env, err))
		return
	}
	b.keep(r)
	finish := func() {
		stop(nil)
		close(r.ended)
		b.forget(r)
		b.table.Done(&r.Flight)
	}
	wait, pass := b.turn()
	started := b.start(func() {
		defer pass()
		defer finish()
		// also when it is cancelled meanwhile: what comes next still comes behind what was before
		if await(b.ctx, wait) {
			b.run(ctx, r, pass)
		}
	})
	if !started {
		finish()
	}
}

// run gets the answer of a request, if it takes several attempts. pass lets the next message begin.
func (b *bridge) run(ctx context.Context, r *request, pass func()) {
	if r.env.Method == string(mcp.MethodInitialize) {
		pass = func() {} // what comes next depends on its answer
	}
	var wait backoff
	if !b.remote.reached.Load() {
		wait.since = time.Now()
		unheard := time.AfterFunc(unheardFor, b.remote.reportUnheard)
		defer unheard.Stop()
	}
	for r.begin(b.keepsCalls.Load()) {
		began := time.Now()
		r.opened = false
		err := b.attempt(ctx, r, pass)
		pass()
		switch {
		case err == nil || !r.Waits():
			return
		case ctx.Err() != nil:
			b.complete(r)
			return
		case errors.Is(err, errSessionNew):
			continue
		}
		if r.opened && time.Since(began) > steady {
			wait = backoff{} // what broke had worked
		}
		var after time.Duration
		total := retryFor
		if s, ok := errors.AsType[*statusError](err); ok {
			after = s.after
			if s.denied() {
				b.remote.report(s)
			}
		} else if !b.remote.reached.Load() {
			total = reachFor
		}
		d, ok := wait.next(after, total)
		if permanent(err) || !r.repeatable() || !ok {
			b.remote.reportUnheard()
			// a write error ends the connection by itself
			_ = b.out.WriteLine(b.remote.explain(r.ID, err, !r.repeatable()), 0, r.Settle)
			return
		}
		b.o.Log.Debug("trying again", "method", r.env.Method, "in", d, "err", err)
		if !pause(ctx, d, r.gone) {
			if r.Waits() {
				b.complete(r)
			}
			return
		}
	}
}

// begin says whether an attempt should be made. With the first one, a call gets the key by which the endpoint knows it
// again, if it keeps what calls did.
func (r *request) begin(keeps bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.Waits() {
		return false
	}
	if !r.sent && r.Call && keeps {
		switch {
		case r.env.HasCall:
			r.key = r.env.Call
		default:
			key := newHandle()
			if msg, ok := jsonrpc.WithCall(r.msg, key); ok {
				r.msg, r.key = msg, key
			}
		}
	}
	r.sent = true
	return true
}

// complete ends a listen that ends with the connection, as it would end if the server did. Nothing else is answered.
func (b *bridge) complete(r *request) {
	if !r.listen() {
		return
	}
	body, err := jsonrpc.Marshal(map[string]any{
		"resultType": mcp.ResultTypeComplete,
		"_meta":      map[string]any{mcp.MetaKeySubscriptionID: r.ID},
	})
	if err == nil { // an id that passed the scan can always be encoded
		_ = b.out.WriteLine(jsonrpc.ResultLine(r.ID, body), 0, r.Settle) // the connection ends anyway
	}
}

// errSessionNew says that the request was sent to a session that is gone, and that there is a new one.
var errSessionNew = errors.New("the session was lost")

// attempt sends a request once, and passes on what comes back. With nil the client has its answer, or wants none. sent
// is called when the request is on its way, if not before an error is returned.
func (b *bridge) attempt(ctx context.Context, r *request, sent func()) error {
	outer := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var quiet *watch
	if r.repeatable() {
		quiet = newWatch(b.remote.beats.Load, stop)
		defer quiet.stop()
	}
	s := b.sessions.current()
	traced := httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }})
	resp, err := b.remote.send(traced, http.MethodPost, s.header(r.env, r.env.Version), r.msg)
	if e, ok := errors.AsType[*statusError](err); ok && e.code == http.StatusNotFound && s.lost(r.env) && !r.renewed &&
		!r.swallowed {
		if err := b.renew(outer, s.number); err != nil {
			return err
		}
		r.renewed = true
		return errSessionNew
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.opened, r.sessionID = true, resp.Header.Get(mcp.HeaderSessionID)
	err = b.answer(r, resp, quiet.heard(resp.Body), stop)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w: %w", errStreamEnd, errSilent)
	}
	return err
}

// answer passes on the body of an answer. end is called to read no further.
func (b *bridge) answer(r *request, resp *http.Response, body io.Reader, end func(error)) error {
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind {
	case "application/json":
		data, err := io.ReadAll(io.LimitReader(body, jsonrpc.MaxMessage+1))
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", errStreamEnd, err)
		case len(data) > jsonrpc.MaxMessage:
			return errTooLong
		case !b.receive(r, data):
			return errNoAnswer
		}
		return nil
	case "text/event-stream":
	default:
		return fmt.Errorf("%w: %d with %q", errNoAnswer, resp.StatusCode, kind)
	}
	events := b.remote.events(body)
	answered := false
	for {
		ev, err := events.next()
		switch {
		case answered && err != nil, !r.Waits() && err != nil:
			return nil
		case errors.Is(err, errTooLong):
			return err
		case errors.Is(err, io.EOF):
			return errStreamEnd
		case err != nil:
			return fmt.Errorf("%w: %w", errStreamEnd, err)
		}
		if ev.isMessage() && b.receive(r, ev.data) && !answered {
			answered = true
			t := time.AfterFunc(lingers, func() { end(nil) })
			defer t.Stop()
		}
	}
}

// isMessage says whether the event is one: others, and the empty ones that some servers begin with, are not.
func (e event) isMessage() bool { return (e.name == "" || e.name == "message") && len(e.data) > 0 }

// receive passes on a message of the endpoint, which came with the answer to r; nil: on the GET stream. It is true if
// the message is the answer to r.
func (b *bridge) receive(r *request, data []byte) bool {
	msg := bytes.TrimSpace(data)
	env, bad := jsonrpc.Scan(msg)
	if bad != nil && (bad.Code == jsonrpc.CodeParseError || len(msg) > jsonrpc.MaxMessage || msg[0] != '{') {
		b.o.Log.Warn("what the endpoint sent is no message and is dropped", "host", b.remote.url.Host,
			"why", bad.Message)
		return false
	}
	flatten(msg)
	switch {
	case env.Method != "":
		b.pass(r, env, msg)
	case env.HasResult || env.HasError:
		return b.settle(r, env, msg)
	default:
		b.o.Log.Warn("what the endpoint sent is neither a request nor an answer and is dropped",
			"host", b.remote.url.Host)
	}
	return false
}

// pass writes a notification or a request of the endpoint.
func (b *bridge) pass(r *request, env jsonrpc.Envelope, msg []byte) {
	if r != nil && r.listen() && env.Method == string(mcp.MethodNotificationSubscriptionsAcknowledged) {
		if r.acked {
			return // the client does not know that the listen was posted again
		}
		r.acked = true
	}
	_ = b.out.WriteLine(append(msg, '\n'), 0, func() bool { // a write error ends the connection by itself
		return r == nil || !r.Cancelled()
	})
}

// settle writes an answer, with the id that the client gave.
func (b *bridge) settle(r *request, env jsonrpc.Envelope, msg []byte) bool {
	to := r
	if r == nil || !jsonrpc.SameID(r.ID, env.ID) {
		if to = b.find(env.ID); to == nil {
			b.o.Log.Warn("an answer to nothing is dropped", "host", b.remote.url.Host)
			return false
		}
	}
	b.learn(to, msg)
	if !bytes.Equal(env.ID, to.ID) {
		msg = jsonrpc.WithID(msg, to.ID)
	}
	if to.swallowed {
		return to.Flight.Settle()
	}
	_ = b.out.WriteLine(append(msg, '\n'), 0, to.Flight.Settle) // a write error ends the connection by itself
	return to == r
}

// abandon tells the endpoint that the client has cancelled r, which is out of the table already.
func (b *bridge) abandon(r *request, env jsonrpc.Envelope, msg []byte) {
	r.mu.Lock()
	sent, key := r.sent, r.key
	r.mu.Unlock()
	if r.modern() {
		if sent && key != "" {
			if msg, ok := jsonrpc.WithCall(msg, key); ok {
				b.post(env, msg, r.env.Version, func(error) { r.stop(jsonrpc.ErrCancelled) })
				return
			}
		}
		r.stop(jsonrpc.ErrCancelled) // the end of its stream is the message
		return
	}
	if !sent {
		r.stop(jsonrpc.ErrCancelled)
		return
	}
	// The end of a connection is no cancel here, but an endpoint that does not end the stream must not keep it.
	b.post(env, msg, "", func(error) {
		if pause(b.ctx, stdio.CancelGrace, r.ended) {
			r.stop(jsonrpc.ErrCancelled)
		}
	})
}

// await waits for the message before. It is false if ctx ended first.
func await(ctx context.Context, before <-chan struct{}) bool {
	select {
	case <-before:
		return true
	case <-ctx.Done():
		return false
	}
}
