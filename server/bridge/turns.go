package bridge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
)

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
			case e.code == http.StatusNotFound && aboutSession(env) && s.lost(env) && !renewed:
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
	resp, err := b.remote.send(ctx, http.MethodPost, b.sessions.current().header(env, version), msg)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
