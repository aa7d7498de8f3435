package server

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/tools/session"
)

// A hub brings clients what answers no request: that a list changed. It is safe for concurrent use; the zero value is
// ready.
type hub struct {
	mu        sync.Mutex // never held while anything is sent
	listeners []*listener
	// lists are closed when the client of a session has read its list of tools again
	lists map[session.Key]chan struct{}
	// rereading counts the subscriptions of a session to changes of its list of tools
	rereading map[session.Key]int
	// the sessions other than their own that legacy connections have called, while they have a stream
	calls map[session.Key]map[session.Key]bool
}

// A listener is one client's stream of such messages: a subscriptions/listen, or a legacy connection, which gets all.
type listener struct {
	key  session.Key     // whose conversation it belongs to
	id   json.RawMessage // of the subscriptions/listen, with which each message is tagged; nil: a legacy connection
	peer request.Peer
	hub  *hub // of a subscription

	rereads bool // it counts in the hub's rereading, whose mu covers it

	mu     sync.Mutex // covers what follows, and the order of what is sent
	acked  bool       // the client was told what it gets; of a legacy connection always
	filter mcp.SubscriptionFilter
	held   []mcp.JSONRPCNotification // that came before
	// of a subscriptions/listen: the least level of log messages that it wants; "": none
	level mcp.LoggingLevel
	seen  map[string]string // of a subscriptions/listen: the sums of the resources that it subscribed to, by URI
}

func (h *hub) add(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, l)
}

func (h *hub) remove(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = slices.DeleteFunc(h.listeners, func(o *listener) bool { return o == l })
	if l.rereads {
		l.rereads = false
		if h.rereading[l.key]--; h.rereading[l.key] == 0 {
			delete(h.rereading, l.key)
		}
	}
	if l.id == nil && !slices.ContainsFunc(h.listeners, func(o *listener) bool { return o.key == l.key }) {
		delete(h.calls, l.key)
	}
}

// subscribe notes that a subscription is told of changes of the list of tools. It comes before its acknowledgement.
func (h *hub) subscribe(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.rereads || !slices.Contains(h.listeners, l) {
		return
	}
	if h.rereading == nil {
		h.rereading = map[session.Key]int{}
	}
	l.rereads = true
	h.rereading[l.key]++
}

// call notes that a legacy connection has called a session that is not its own.
func (h *hub) call(connection, key session.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.listeners, func(l *listener) bool { return l.id == nil && l.key == connection }) {
		return // nothing can be sent to it
	}
	if h.calls[connection] == nil {
		if h.calls == nil {
			h.calls = map[session.Key]map[session.Key]bool{}
		}
		h.calls[connection] = map[session.Key]bool{}
	}
	if len(h.calls[connection]) >= maxCalled {
		clear(h.calls[connection]) // it costs messages of the log
	}
	h.calls[connection][key] = true
}

// maxCalled is how many sessions other than its own are remembered for a legacy connection.
const maxCalled = 1_000

// called says whether a legacy connection has called a session that is not its own.
func (h *hub) called(connection, key session.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[connection][key]
}

// legacy returns the legacy connections, the newest first.
func (h *hub) legacy() []*listener {
	connections := h.all(func(l *listener) bool { return l.id == nil })
	slices.Reverse(connections)
	return connections
}

// tellOne sends a message to a legacy client, on the newest of its streams that can be written to.
func (h *hub) tellOne(key session.Key, n mcp.JSONRPCNotification) {
	for _, l := range h.legacy() {
		if l.key == key && l.tell(n) {
			return
		}
	}
}

// all returns those that match, the oldest first.
func (h *hub) all(match func(*listener) bool) []*listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []*listener
	for _, l := range h.listeners {
		if match(l) {
			found = append(found, l)
		}
	}
	return found
}

// broadcast sends a message to everybody who wants it. A legacy client that has several streams open gets it on one of
// them alone, as its protocol wants: on the newest that can be written to.
func (h *hub) broadcast(n mcp.JSONRPCNotification) {
	told := map[session.Key]bool{}
	for _, l := range h.legacy() {
		if !told[l.key] {
			told[l.key] = l.tell(n)
		}
	}
	for _, l := range h.all(func(l *listener) bool { return l.id != nil }) {
		l.tell(n)
	}
}

// announce sends a notification without parameters to the subscriptions of one session.
func (h *hub) announce(key session.Key, method string) {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method}}
	for _, l := range h.all(func(l *listener) bool { return l.id != nil && l.key == key }) {
		l.tell(n)
	}
}

// rereads says whether a modern client is told when the list of this session changes. That of a session which several
// conversations share does not: what one of them finds would appear in the lists of the others.
func (h *hub) rereads(key session.Key) bool {
	if strings.HasPrefix(key.Session, sessions.ByWorkspace) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rereading[key] > 0
}

// relist returns what is closed when the client of this session has read its list of tools next.
func (h *hub) relist(key session.Key) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lists == nil {
		h.lists = map[session.Key]chan struct{}{}
	}
	if h.lists[key] == nil {
		h.lists[key] = make(chan struct{})
	}
	return h.lists[key]
}

// relisted says that the client of a session reads its list of tools, or that nobody waits for that any more.
func (h *hub) relisted(key session.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.lists[key]; c != nil {
		close(c)
		delete(h.lists, key)
	}
}

// tell sends a message, if the client wants it; before the acknowledgement it waits for that. It says whether it was
// sent.
func (l *listener) tell(n mcp.JSONRPCNotification) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.acked:
		same := func(o mcp.JSONRPCNotification) bool {
			return o.Method == n.Method && strings.HasSuffix(n.Method, "/list_changed")
		}
		if !slices.ContainsFunc(l.held, same) { // one is enough: its client lists after that
			l.held = append(l.held, n)
		}
	case l.id == nil || l.wants(n):
		return l.send(n)
	}
	return false
}

// acknowledge sends the acknowledgement and then what was held back for it.
func (l *listener) acknowledge(ack mcp.JSONRPCNotification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if allowed, ok := ack.Params.AdditionalFields["notifications"].(mcp.SubscriptionFilter); ok {
		l.filter = allowed
		if allowed.ToolsListChanged && l.hub != nil {
			l.hub.subscribe(l)
		}
	}
	l.send(ack)
	l.acked = true
	for _, n := range l.held {
		if l.wants(n) {
			l.send(n)
		}
	}
	l.held = nil
}

// send sends one message, tagged, and says whether it could. The caller holds mu.
func (l *listener) send(n mcp.JSONRPCNotification) bool {
	if l.id != nil {
		meta := maps.Clone(n.Params.Meta)
		if meta == nil {
			meta = map[string]any{}
		}
		meta[mcp.MetaKeySubscriptionID] = l.id
		n.Params.Meta = meta
	}
	return l.peer.Notify(n.Method, n.Params) == nil // a client that left, or cancelled meanwhile, wants nothing
}

// wants says whether a subscription covers a notification. The caller holds mu.
func (l *listener) wants(n mcp.JSONRPCNotification) bool {
	f := l.filter
	switch n.Method {
	case string(mcp.MethodNotificationMessage):
		return l.level != "" && noticeLevel.ShouldSendTo(l.level)
	case mcp.MethodNotificationResourceUpdated:
		uri, _ := n.Params.AdditionalFields["uri"].(string)
		return slices.Contains(f.ResourceSubscriptions, uri)
	case mcp.MethodNotificationToolsListChanged:
		return f.ToolsListChanged
	case mcp.MethodNotificationPromptsListChanged:
		return f.PromptsListChanged
	case mcp.MethodNotificationResourcesListChanged:
		return f.ResourcesListChanged
	}
	return false
}

// follow begins to send a legacy client what answers no request, until stop.
func (s *Server) follow(key session.Key, peer request.Peer) (stop func()) {
	l := &listener{key: key, peer: peer, acked: true}
	s.hub.add(l)
	return func() { s.hub.remove(l) }
}

// relay sends on what mcp-go broadcasts, until end is closed. Only an author of Extend makes it do so.
func (s *Server) relay(end <-chan struct{}) error {
	notes := make(chan mcp.JSONRPCNotification, relayBuffer)
	if err := s.gate.mcp.RegisterSession(context.Background(), &clientSession{id: "relay", notes: notes}); err != nil {
		return err
	}
	go func() {
		for {
			select {
			case n := <-notes:
				s.hub.broadcast(n)
			case <-end:
				return
			}
		}
	}()
	return nil
}

// relayBuffer is how many of mcp-go's own notifications may wait. They are list changes, a few per minute at most.
const relayBuffer = 100

// listen serves one subscriptions/listen until its ctx ends. mcp-go checks the request, decides what may be subscribed,
// and blocks; its acknowledgement comes through the session's channel.
func (t *turn) listen(ctx context.Context) request.Answer {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l := &listener{key: t.req.Session, id: t.req.ID, peer: t.req.Peer, hub: &t.s.hub, level: logLevel(t.req.Message),
		seen: map[string]string{}}
	t.s.hub.add(l)
	defer t.s.hub.remove(l)

	notes := make(chan mcp.JSONRPCNotification, 1) // the acknowledgement
	acknowledged := make(chan struct{})
	go func() {
		defer close(acknowledged)
		select {
		case ack := <-notes:
			l.acknowledge(ack)
		case <-ctx.Done():
		}
	}()
	answer := t.handle(ctx, &clientSession{t: t, id: "listen", notes: notes, listener: l})
	// An empty filter is acknowledged and completed at once: the acknowledgement still goes first.
	select {
	case ack := <-notes:
		l.acknowledge(ack)
	default:
	}
	end()
	<-acknowledged
	return answer
}

// A clientSession is what mcp-go wants of a session: one for each request, and one for what it broadcasts. Nothing of
// it outlives the request.
type clientSession struct {
	t        *turn // nil: of broadcasts
	id       string
	notes    chan mcp.JSONRPCNotification // that mcp-go sends by itself; nil: none is taken
	level    mcp.LoggingLevel
	listener *listener // of a subscriptions/listen; else nil
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
		subscriber{c.t}.keepLevel(level)
	}
}

// SubscribeToResourceErr subscribes a connection to a resource, or begins a subscriptions/listen with it. Any address
// will do: a client may wait for what is not there yet, and nobody learns which ids others have.
func (c *clientSession) SubscribeToResourceErr(uri string) error {
	switch {
	case c.t == nil:
		return nil
	case c.listener != nil:
		return subscriber{c.t}.listenTo(c.listener, uri)
	}
	return subscriber{c.t}.subscribe(uri)
}

// SubscribeToResource does nothing: mcp-go asks for SubscribeToResourceErr.
func (c *clientSession) SubscribeToResource(string) {}

// UnsubscribeFromResource ends what SubscribeToResourceErr began. That of a subscriptions/listen ends with it.
func (c *clientSession) UnsubscribeFromResource(uri string) {
	if c.t != nil && c.listener == nil {
		subscriber{c.t}.unsubscribe(uri)
	}
}

// SubscribedResources and IsSubscribedToResource are for updates that mcp-go sends: ours do not go through it.

func (c *clientSession) SubscribedResources() []string          { return nil }
func (c *clientSession) IsSubscribedToResource(uri string) bool { return false }

var (
	_ mcpserver.SessionWithLogging                  = (*clientSession)(nil)
	_ mcpserver.SessionWithResourceSubscriptionsErr = (*clientSession)(nil)
)
