package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"codehand/server/jsonrpc"

	"github.com/mark3labs/mcp-go/mcp"
)

// Messages are sent in the order in which they came, as far as HTTP permits: each begins when the one before is written
// to its connection. Only initialize and notifications/initialized are waited for to their ends.

// turn takes the next place in the order. The message begins when wait is closed, and calls pass when the next one may.
// Only for the reading goroutine.
func (b *bridge) turn() (wait <-chan struct{}, pass func()) {
	wait = b.last
	next := make(chan struct{})
	b.last = next
	return wait, sync.OnceFunc(func() { close(next) })
}

// start runs f, unless the bridge ends already.
func (b *bridge) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.work.Go(f)
	return true
}

// aside runs f, which is for no request. When very many of these wait, so does the reading goroutine.
func (b *bridge) aside(f func()) {
	select {
	case b.slots <- struct{}{}:
	case <-b.out.Failed:
		return
	}
	if !b.start(func() {
		defer func() { <-b.slots }()
		f()
	}) {
		<-b.slots
	}
}

// keep makes a request findable by its id.
func (b *bridge) keep(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[string(r.ID)] = r
}

// forget ends that, unless another request has the id by now.
func (b *bridge) forget(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[string(r.ID)] == r {
		delete(b.open, string(r.ID))
	}
}

// find returns the open request with this raw id, or nil.
func (b *bridge) find(id json.RawMessage) *request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[string(id)]
}

// post sends a message that nothing answers, in its turn. then gets how it ended.
func (b *bridge) post(env jsonrpc.Envelope, msg []byte, version string, then func(error)) {
	wait, pass := b.turn()
	b.aside(func() {
		defer pass()
		if await(b.ctx, wait) {
			then(b.insist(env, msg, version, pass))
		}
	})
}

// greet passes on notifications/initialized, before anything that comes later, and opens the GET stream.
func (b *bridge) greet(env jsonrpc.Envelope, msg []byte) {
	wait, pass := b.turn()
	b.aside(func() {
		defer pass()
		if !await(b.ctx, wait) {
			return
		}
		if err := b.insist(env, msg, "", func() {}); err != nil {
			b.o.Log.Warn("a notification did not reach the endpoint", "host", b.remote.url.Host, "method", env.Method,
				"err", err)
			return
		}
		if b.sessions.current().hello != nil {
			b.sessions.initialized(msg)
			b.openStream()
		}
	})
}

// insist delivers a message that nothing answers, if it takes several attempts. sent is called when it is on its way.
func (b *bridge) insist(env jsonrpc.Envelope, msg []byte, version string, sent func()) error {
	wait := backoff{since: time.Now()}
	renewed := false
	for {
		s := b.sessions.current()
		err := b.deliver(b.ctx, env, msg, version, sent)
		sent()
		if err == nil || b.ctx.Err() != nil {
			return err
		}
		var after time.Duration
		total := retryFor
		if e, ok := errors.AsType[*statusError](err); ok {
			after = e.after
			switch {
			case e.denied():
				b.remote.report(e)
			case e.code == http.StatusNotFound && aboutSession(env) && b.lost(env, s) && !renewed:
				if err = b.renew(b.ctx, s.number); err == nil {
					renewed = true
					continue
				}
			}
		} else if !b.remote.reached.Load() {
			total = reachFor
		}
		d, ok := wait.next(after, total)
		if permanent(err) || !ok || !pause(b.ctx, d, nil) {
			return err
		}
	}
}

// aboutSession says whether a message that nothing answers means anything to a new session. The answer to a request
// and the cancel of one do not: what they are about is lost.
func aboutSession(env jsonrpc.Envelope) bool {
	return env.Method != "" && env.Method != string(mcp.MethodNotificationCancelled)
}

// deliver sends a message that nothing answers, once.
func (b *bridge) deliver(ctx context.Context, env jsonrpc.Envelope, msg []byte, version string, sent func()) error {
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { sent() }})
	ctx, cancel := context.WithTimeout(ctx, retryFor) // what it does is done before it is answered, which is at once
	defer cancel()
	resp, err := b.remote.send(ctx, http.MethodPost, b.header(env, version, b.sessions.current()), msg)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
