package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/stdio"
)

// A session is what a legacy endpoint knows its client by.
type session struct {
	hello   []byte // the client's initialize; nil: none was answered
	ready   []byte // the client's notifications/initialized; nil: it did not come yet
	id      string // Mcp-Session-Id; "": the endpoint gave none
	version string // as negotiated
	number  int    // of the session, from 1
	since   time.Time
}

// sessions holds the session in use. It is safe for concurrent use.
type sessions struct {
	mu       sync.Mutex
	now      session
	renewing chan struct{}      // holds one token: who has it may make a new session
	close    context.CancelFunc // ends the GET stream; nil: there is none
	closed   bool               // no more streams are opened
}

func newSessions() *sessions {
	s := &sessions{renewing: make(chan struct{}, 1)}
	s.renewing <- struct{}{}
	return s
}

func (s *sessions) current() session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// begin notes that initialize was answered.
func (s *sessions) begin(hello []byte, id, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.hello, s.now.id, s.now.version = hello, id, version
	s.now.number++
	s.now.since = time.Now()
}

func (s *sessions) initialized(ready []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.ready = ready
}

// renew makes a new session in place of the one with this number, which the endpoint has forgotten: the client's
// initialize is sent again, and its answer is swallowed.
func (b *bridge) renew(ctx context.Context, number int) error {
	select {
	case <-b.sessions.renewing:
		defer func() { b.sessions.renewing <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s := b.sessions.current()
	if s.number != number {
		return nil // another goroutine did
	}
	b.o.Log.Info("the endpoint does not know the session any more: initializing again", "host", b.remote.url.Host)
	env, _ := jsonrpc.Scan(s.hello) // it was sent before
	r := &request{Flight: jsonrpc.Flight{ID: env.ID}, env: env, msg: s.hello, swallowed: true}
	if err := b.attempt(ctx, r, func() {}); err != nil {
		return err
	}
	if b.sessions.current().number == number {
		return fmt.Errorf("%w: initialize was refused", errNoAnswer)
	}
	if s.ready == nil {
		return nil
	}
	env, _ = jsonrpc.Scan(s.ready) // likewise
	if err := b.deliver(ctx, env, s.ready, "", func() {}); err != nil {
		return err
	}
	b.openStream()
	return nil
}

// lost says whether a 404 means that the session is gone.
func (s session) lost(env jsonrpc.Envelope) bool {
	return env.Version < mcp.ProtocolVersion20260728 && env.Method != string(mcp.MethodInitialize) && s.id != "" &&
		s.hello != nil
}

// header returns the headers of a POST. version is that of the era; "" or a legacy one: the session's.
func (s session) header(env jsonrpc.Envelope, version string) http.Header {
	h := http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	if version < mcp.ProtocolVersion20260728 {
		if env.Method != string(mcp.MethodInitialize) {
			s.put(h)
		}
		return h
	}
	set := func(name, value string) {
		if v, ok := mcp.EncodeHeaderValue(value); ok && v != "" {
			h.Set(name, v)
		}
	}
	set(mcp.HeaderProtocolVersion, version)
	set(mcp.HeaderMethod, env.Method)
	switch mcp.MCPMethod(env.Method) {
	case mcp.MethodToolsCall, mcp.MethodPromptsGet:
		set(mcp.HeaderName, env.Name)
	case mcp.MethodResourcesRead:
		set(mcp.HeaderName, env.URI)
	}
	return h
}

// closeStream ends the GET stream for good.
func (s *sessions) closeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.close != nil {
		s.close()
	}
}

// learn takes from an answer what the bridge must know. It runs before the client gets the answer.
func (b *bridge) learn(r *request, answer []byte) {
	hello := r.env.Method == string(mcp.MethodInitialize)
	if !hello && r.env.Method != string(mcp.MethodServerDiscover) {
		return
	}
	var m struct {
		Result *struct {
			ProtocolVersion string `json:"protocolVersion"`
			Capabilities    struct {
				Experimental map[string]json.RawMessage `json:"experimental"`
			} `json:"capabilities"`
		} `json:"result"`
	}
	if err := json.Unmarshal(answer, &m); err != nil || m.Result == nil {
		return // an error, or an answer that the client will not understand either
	}
	_, keeps := m.Result.Capabilities.Experimental[bridgeCapability]
	b.keepsCalls.Store(keeps)
	if hello {
		b.sessions.begin(r.msg, r.sessionID, m.Result.ProtocolVersion)
	}
}

// bridgeCapability is the experimental capability of an endpoint that answers a repeated call with what the first one
// did.
const bridgeCapability = "codehand/bridge"

// openStream opens the GET stream on which the endpoint says what belongs to no request, in place of the one before.
func (b *bridge) openStream() {
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	if b.sessions.close != nil {
		b.sessions.close()
	}
	if b.sessions.closed {
		return
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.sessions.close = cancel
	b.streams.Go(func() {
		defer cancel()
		b.stream(ctx)
	})
}

// stream keeps the GET stream open until ctx ends or the endpoint wants none. There is no limit to the attempts: it is
// one every longestWait, for as long as the client is there.
func (b *bridge) stream(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		began := time.Now()
		err := b.streamOnce(ctx)
		var after time.Duration
		if s, ok := errors.AsType[*statusError](err); ok {
			after = s.after
			switch {
			case s.code == http.StatusNotFound:
				// An endpoint that forgets a session at once has no such stream.
				now := b.sessions.current()
				if now.id == "" || time.Since(now.since) < retryFor {
					return
				}
				// The stream's own context ends when the new session gets its stream.
				if b.renew(b.ctx, now.number) == nil {
					return
				}
			case s.denied():
				b.remote.report(s)
				return
			case !s.passing() && s.code != http.StatusTooManyRequests:
				return // 405: it has none
			}
		} else if permanent(err) {
			b.o.Log.Debug("no stream", "err", err)
			return
		}
		if time.Since(began) > longestWait {
			wait = backoff{}
		}
		d, _ := wait.next(after, 0)
		pause(ctx, d, nil)
	}
}

// streamOnce reads the GET stream until it breaks. The error is never nil.
func (b *bridge) streamOnce(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	quiet := newWatch(b.remote.beats.Load, stop)
	defer quiet.stop()
	s := b.sessions.current()
	h := http.Header{"Accept": {"text/event-stream"}}
	s.put(h)
	resp, err := b.remote.send(ctx, http.MethodGet, h, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return fmt.Errorf("%w: a GET was answered with %q", errNoAnswer, kind)
	}
	events := b.remote.events(quiet.heard(resp.Body))
	for {
		ev, err := events.next()
		if err != nil {
			return err
		}
		if ev.isMessage() {
			b.receive(nil, ev.data)
		}
	}
}

// put sets the headers of the session.
func (s session) put(h http.Header) {
	if s.id != "" {
		h.Set(mcp.HeaderSessionID, s.id)
	}
	if s.version != "" {
		h.Set(mcp.HeaderProtocolVersion, s.version)
	}
}

// leave tells a legacy endpoint that its session is over.
func (b *bridge) leave() {
	s := b.sessions.current()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), stdio.CancelGrace)
	defer cancel()
	h := http.Header{}
	s.put(h)
	resp, err := b.remote.send(ctx, http.MethodDelete, h, nil)
	if err != nil {
		b.o.Log.Debug("the session was not ended at the endpoint", "err", err)
		return
	}
	_ = resp.Body.Close() // nothing is in it
}
