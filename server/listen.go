package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
)

// A pipeSession is what mcp-go calls a session: one for the legacy requests of a connection, and one for each modern
// request. Notifications that mcp-go sends by itself come through its channel; ours do not.
type pipeSession struct {
	id    string
	notes chan mcp.JSONRPCNotification

	mu    sync.Mutex
	info  mcp.Implementation
	caps  mcp.ClientCapabilities
	level mcp.LoggingLevel
}

// broadcastBuffer is how many of mcp-go's own notifications may wait. They are list changes, a few per minute at most.
const broadcastBuffer = 100

// newPipeSession returns a session that takes buffer notifications of mcp-go; with 0 it takes none.
func newPipeSession(id string, buffer int) *pipeSession {
	p := &pipeSession{id: id}
	if buffer > 0 {
		p.notes = make(chan mcp.JSONRPCNotification, buffer)
	}
	return p
}

// The methods that mcp-go asks of a session.

func (p *pipeSession) SessionID() string { return p.id }

func (p *pipeSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return p.notes }

// Initialize is called by mcp-go when it has answered initialize. Nothing depends on it.
func (p *pipeSession) Initialize() {}

// Initialized is always true: what may be sent to whom is decided in fanOut.
func (p *pipeSession) Initialized() bool { return true }

func (p *pipeSession) GetClientInfo() mcp.Implementation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

func (p *pipeSession) SetClientInfo(info mcp.Implementation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info = info
}

func (p *pipeSession) GetClientCapabilities() mcp.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caps
}

func (p *pipeSession) SetClientCapabilities(caps mcp.ClientCapabilities) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caps = caps
}

func (p *pipeSession) SetLogLevel(level mcp.LoggingLevel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = level
}

func (p *pipeSession) GetLogLevel() mcp.LoggingLevel {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.level == "" {
		return mcp.LoggingLevelWarning
	}
	return p.level
}

// A listenRecord is one open subscriptions/listen.
type listenRecord struct {
	id     json.RawMessage
	f      *jsonrpc.Flight
	end    context.CancelFunc
	acked  bool
	filter mcp.SubscriptionFilter
	held   []mcp.JSONRPCNotification // broadcasts that came before the acknowledgement was written

	mu sync.Mutex // covers acked, filter, held, and the order of what is written
}

// listens are the open listens of a connection. It is safe for concurrent use.
type listens struct {
	mu     sync.Mutex // never held while anything is written
	open   []*listenRecord
	closed bool // one that comes now is completed at once
}

func (l *listens) add(r *listenRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, r)
	if l.closed {
		r.end()
	}
}

func (l *listens) remove(r *listenRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.open {
		if o == r {
			l.open = append(l.open[:i:i], l.open[i+1:]...)
			return
		}
	}
}

// endAll completes every listen: each gets its result.
func (l *listens) endAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, r := range l.open {
		r.end()
	}
}

func (l *listens) all() []*listenRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.open)
}

// listen serves one subscriptions/listen until the client cancels it or the connection ends. mcp-go checks the request,
// decides what may be subscribed, and blocks; its acknowledgement comes through the session's channel.
func (c *conn) listen(ctx context.Context, f *jsonrpc.Flight, rec *record, ps *pipeSession, msg []byte) []byte {
	ctx, end := context.WithCancel(ctx)
	defer end()
	r := &listenRecord{id: rec.env.ID, f: f, end: end}
	c.listens.add(r)
	defer c.listens.remove(r)

	acks := make(chan struct{})
	go func() {
		defer close(acks)
		select {
		case ack := <-ps.notes:
			c.acknowledge(r, ack)
		case <-ctx.Done():
		}
	}()
	answer := c.s.dispatch(ctx, rec, msg)
	// An empty filter is acknowledged and completed at once: the acknowledgement still goes first.
	select {
	case ack := <-ps.notes:
		c.acknowledge(r, ack)
	default:
	}
	end()
	<-acks
	return answer
}

// acknowledge writes the acknowledgement and then what was held back for it.
func (c *conn) acknowledge(r *listenRecord, ack mcp.JSONRPCNotification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if allowed, ok := ack.Params.AdditionalFields["notifications"].(mcp.SubscriptionFilter); ok {
		r.filter = allowed
	}
	c.notifyListen(r, ack)
	r.acked = true
	for _, n := range r.held {
		if wants(r.filter, n.Method) {
			c.notifyListen(r, n)
		}
	}
	r.held = nil
}

func (c *conn) notifyListen(r *listenRecord, n mcp.JSONRPCNotification) {
	line, err := notificationLine(n, r.id)
	if err != nil {
		c.s.log.Error("notification cannot be encoded", "method", n.Method, "err", err)
		return
	}
	_ = c.out.WriteLine(line, 0, r.f.Waits) // a listen that was cancelled meanwhile wants nothing
}

// fanOut sends what mcp-go broadcasts: untagged to a client that initialized, and tagged to each listen that asked for
// it. A modern client without a listen gets nothing.
func (c *conn) fanOut(end <-chan struct{}) {
	for {
		select {
		case n := <-c.legacy.notes:
			if c.started.Load() {
				if line, err := notificationLine(n, nil); err == nil {
					_ = c.out.WriteLine(line, 0, nil) // a write error ends the connection by itself
				}
			}
			c.tellListens(n)
		case <-end:
			return
		}
	}
}

// tellListens sends a broadcast to each listen that asked for it.
func (c *conn) tellListens(n mcp.JSONRPCNotification) {
	for _, r := range c.listens.all() {
		r.mu.Lock()
		switch {
		case !r.acked:
			r.held = append(r.held, n)
		case wants(r.filter, n.Method):
			c.notifyListen(r, n)
		}
		r.mu.Unlock()
	}
}

// wants says whether a subscription covers a notification.
func wants(f mcp.SubscriptionFilter, method string) bool {
	switch method {
	case mcp.MethodNotificationToolsListChanged:
		return f.ToolsListChanged
	case mcp.MethodNotificationPromptsListChanged:
		return f.PromptsListChanged
	case mcp.MethodNotificationResourcesListChanged:
		return f.ResourcesListChanged
	}
	return false
}
