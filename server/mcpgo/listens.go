package mcpgo

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/hub"
	"codehand/server/request"
)

// Relay sends on what mcp-go broadcasts, until end is closed. Only an author of Extend makes it do so.
func (g *Gateway) Relay(end <-chan struct{}) error {
	notes := make(chan mcp.JSONRPCNotification, relayBuffer)
	if err := g.Server.RegisterSession(context.Background(), &clientSession{id: "relay", notes: notes}); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case n := <-notes:
				g.Notices.Hub.Broadcast(n)
			case <-end:
				return
			}
		}
	}()
	return nil
}

// relayBuffer is how many of mcp-go's own notifications may wait. They are list changes, a few per minute at most.
const relayBuffer = 100

// Listen serves one subscriptions/listen until its ctx ends. mcp-go checks the request, decides what may be subscribed,
// and blocks; its acknowledgement comes through the session's channel.
func (g *Gateway) Listen(ctx context.Context, of *request.Turn) request.Answer {
	t := &turn{Turn: of, g: g}
	ctx, end := context.WithCancel(ctx)
	defer end()
	l := g.Notices.Hub.Subscribe(t.Req.Session, t.Req.ID, t.Req.Peer, logLevel(t.Req.Message))
	defer l.End()

	notes := make(chan mcp.JSONRPCNotification, 1) // the acknowledgement
	acknowledged := make(chan struct{})
	go func() {
		defer close(acknowledged)
		select {
		case ack := <-notes:
			l.Acknowledge(ack)
		case <-ctx.Done():
		}
	}()
	answer := t.handle(ctx, &clientSession{t: t, id: "listen", notes: notes, listener: l})
	// An empty filter is acknowledged and completed at once: the acknowledgement still goes first.
	select {
	case ack := <-notes:
		l.Acknowledge(ack)
	default:
	}
	end()
	<-acknowledged
	return answer
}

// logLevel is the level that a modern request wants log messages of; "": none.
func logLevel(message []byte) mcp.LoggingLevel {
	var m struct {
		Params struct {
			Meta struct {
				Level mcp.LoggingLevel `json:"io.modelcontextprotocol/logLevel"`
			} `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &m) // mcp-go answers what has another form
	return m.Params.Meta.Level
}

// Notify sends a notification of the request that ctx belongs to, on that request's own stream. It is what handlers of
// Extend have instead of the Env of a tool: when it returns nil, the bytes left before the answer.
// The error says that nothing was sent, because the request may not stream or was answered.
func Notify(ctx context.Context, method string, params map[string]any) error {
	t := turnFrom(ctx)
	if t == nil {
		return errors.New("this request has no notifier")
	}
	return t.Req.Peer.Notify(method, params)
}

// A clientSession is what mcp-go wants of a session: one for each request, and one for what it broadcasts. Nothing of
// it outlives the request.
type clientSession struct {
	t        *turn // nil: of broadcasts
	id       string
	notes    chan mcp.JSONRPCNotification // that mcp-go sends by itself; nil: none is taken
	level    mcp.LoggingLevel
	listener *hub.Listener // of a subscriptions/listen; else nil
}

// The methods that mcp-go asks of a session.

func (c *clientSession) SessionID() string                                   { return c.id }
func (c *clientSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return c.notes }
func (c *clientSession) Initialize()                                         {}
func (c *clientSession) Initialized() bool                                   { return true }
func (c *clientSession) GetLogLevel() mcp.LoggingLevel                       { return c.level }

// SetLogLevel keeps what logging/setLevel says for the connection.
func (c *clientSession) SetLogLevel(level mcp.LoggingLevel) {
	c.level = level
	if c.t != nil {
		c.t.g.Notices.KeepLevel(c.t.Turn, level)
	}
}

// SubscribeToResourceErr subscribes a connection to a resource, or begins a subscriptions/listen with it. Any address
// will do: a client may wait for what is not there yet, and nobody learns which ids others have.
func (c *clientSession) SubscribeToResourceErr(uri string) error {
	switch {
	case c.t == nil:
		return nil
	case c.listener != nil:
		return c.t.g.Notices.ListenTo(c.t.Turn, c.listener, uri)
	}
	c.t.g.Notices.Subscribe(c.t.Turn, uri)
	return nil
}

// SubscribeToResource does nothing: mcp-go asks for SubscribeToResourceErr.
func (c *clientSession) SubscribeToResource(string) {}

// UnsubscribeFromResource ends what SubscribeToResourceErr began. That of a subscriptions/listen ends with it.
func (c *clientSession) UnsubscribeFromResource(uri string) {
	if c.t != nil && c.listener == nil {
		c.t.g.Notices.Unsubscribe(c.t.Turn, uri)
	}
}

// SubscribedResources and IsSubscribedToResource are for updates that mcp-go sends: ours do not go through it.

func (c *clientSession) SubscribedResources() []string          { return nil }
func (c *clientSession) IsSubscribedToResource(uri string) bool { return false }

var (
	_ mcpserver.SessionWithLogging                  = (*clientSession)(nil)
	_ mcpserver.SessionWithResourceSubscriptionsErr = (*clientSession)(nil)
)
