// Package hub brings clients what answers no request of theirs, on the streams that they hold open for it.
package hub

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/request"
	"codehand/server/sessions"
	"codehand/tools/session"
)

// A Hub brings clients what answers no request: that a list changed. It is safe for concurrent use; the zero value is
// ready.
type Hub struct {
	mu        sync.Mutex // never held while anything is sent
	listeners []*Listener
	// lists are closed when the client of a session has read its list of tools again
	lists map[session.Key]chan struct{}
	// rereading counts the subscriptions of a session to changes of its list of tools
	rereading map[session.Key]int
	// the sessions other than their own that legacy connections have called, while they have a stream
	calls map[session.Key]map[session.Key]bool
	// unsubscribed are the legacy connections that subscribe to no resource, as far as NoSubscriptions was told
	unsubscribed map[session.Key]bool
	asked        uint64 // counts what AskSubscriptions and the ends of connections have dropped of it
}

// A Listener is one client's stream of such messages: a subscriptions/listen, or a legacy connection, which gets all.
type Listener struct {
	key  session.Key     // whose conversation it belongs to
	id   json.RawMessage // of the subscriptions/listen, with which each message is tagged; nil: a legacy connection
	peer request.Peer
	hub  *Hub // of a subscription

	rereads bool // it counts in the hub's rereading, whose mu covers it

	mu     sync.Mutex // covers what follows, and the order of what is sent
	acked  bool       // the client was told what it gets; of a legacy connection always
	filter mcp.SubscriptionFilter
	held   []mcp.JSONRPCNotification // that came before
	// of a subscriptions/listen: the least level of log messages that it wants; "": none
	level mcp.LoggingLevel
	seen  map[string]string // of a subscriptions/listen: the sums of the resources that it subscribed to, by URI
}

// Connect begins to send a legacy client what answers no request, until stop.
func (h *Hub) Connect(key session.Key, peer request.Peer) (stop func()) {
	l := &Listener{key: key, peer: peer, acked: true}
	h.add(l)
	return func() { h.remove(l) }
}

// Subscribe begins a subscriptions/listen with the given id, as the client wrote it. level is the least level of log
// messages that it wants; "": none. Its End must be called; it is told nothing before its Acknowledge.
func (h *Hub) Subscribe(key session.Key, id json.RawMessage, peer request.Peer, level mcp.LoggingLevel) *Listener {
	l := &Listener{key: key, id: id, peer: peer, hub: h, level: level, seen: map[string]string{}}
	h.add(l)
	return l
}

// End ends a subscriptions/listen.
func (l *Listener) End() { l.hub.remove(l) }

func (h *Hub) add(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = append(h.listeners, l)
}

func (h *Hub) remove(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listeners = slices.DeleteFunc(h.listeners, func(o *Listener) bool { return o == l })
	if l.rereads {
		l.rereads = false
		if h.rereading[l.key]--; h.rereading[l.key] == 0 {
			delete(h.rereading, l.key)
		}
	}
	if l.id == nil && !slices.ContainsFunc(h.listeners, func(o *Listener) bool { return o.key == l.key }) {
		delete(h.calls, l.key)
		h.askSubscriptions(l.key)
	}
}

// subscribe notes that a subscription is told of changes of the list of tools. It comes before its acknowledgement.
func (h *Hub) subscribe(l *Listener) {
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

// NoteCall notes that a legacy connection has called a session that is not its own.
func (h *Hub) NoteCall(connection, key session.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.listeners, func(l *Listener) bool { return l.id == nil && l.key == connection }) {
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
func (h *Hub) called(connection, key session.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[connection][key]
}

// legacy returns the legacy connections, the newest first.
func (h *Hub) legacy() []*Listener {
	connections := h.all(func(l *Listener) bool { return l.id == nil })
	slices.Reverse(connections)
	return connections
}

// TellConnection sends a message to a legacy client, on the newest of its streams that can be written to.
func (h *Hub) TellConnection(key session.Key, n mcp.JSONRPCNotification) {
	for _, l := range h.legacy() {
		if l.key == key && l.tell(n) {
			return
		}
	}
}

// Listening returns the legacy connections of the principal of a session, each once, and says whether the session has
// any subscriptions/listen.
func (h *Hub) Listening(key session.Key) (connections []session.Key, subscribed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.listeners {
		switch {
		case l.id != nil:
			subscribed = subscribed || l.key == key
		case l.key.Principal == key.Principal && !slices.Contains(connections, l.key):
			connections = append(connections, l.key)
		}
	}
	return connections, subscribed
}

// NoSubscriptions says whether a legacy connection is known to subscribe to no resource, so that the Store need not be
// asked. If it is not known, the caller asks the Store, and calls remember if there are none. That holds until
// AskSubscriptions, or until the connection has no stream here: while it has one, this process serves all requests of
// its principal.
func (h *Hub) NoSubscriptions(connection session.Key) (known bool, remember func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.asked
	return h.unsubscribed[connection], func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		has := slices.ContainsFunc(h.listeners, func(l *Listener) bool { return l.id == nil && l.key == connection })
		if h.asked != before || !has {
			return // the connection may have subscribed since the Store was asked
		}
		if h.unsubscribed == nil {
			h.unsubscribed = map[session.Key]bool{}
		}
		h.unsubscribed[connection] = true
	}
}

// AskSubscriptions forgets what NoSubscriptions knows of a connection. Call it after each attempt to write to the Store
// what it subscribes to, also after one that failed: the Store may have carried it out.
func (h *Hub) AskSubscriptions(connection session.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.askSubscriptions(connection)
}

// askSubscriptions is AskSubscriptions for a caller that holds mu.
func (h *Hub) askSubscriptions(connection session.Key) {
	h.asked++
	delete(h.unsubscribed, connection)
}

// all returns those that match, the oldest first.
func (h *Hub) all(match func(*Listener) bool) []*Listener {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []*Listener
	for _, l := range h.listeners {
		if match(l) {
			found = append(found, l)
		}
	}
	return found
}

// Broadcast sends a message to everybody who wants it. A legacy client that has several streams open gets it on one of
// them alone, as its protocol wants: on the newest that can be written to.
func (h *Hub) Broadcast(n mcp.JSONRPCNotification) {
	told := map[session.Key]bool{}
	for _, l := range h.legacy() {
		if !told[l.key] {
			told[l.key] = l.tell(n)
		}
	}
	for _, l := range h.all(func(l *Listener) bool { return l.id != nil }) {
		l.tell(n)
	}
}

// Announce sends a notification without parameters to the subscriptions of one session.
func (h *Hub) Announce(key session.Key, method string) {
	n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method}}
	for _, l := range h.all(func(l *Listener) bool { return l.id != nil && l.key == key }) {
		l.tell(n)
	}
}

// AnnounceToAll sends a notification without parameters to every client that wants it.
func (h *Hub) AnnounceToAll(method string) {
	h.Broadcast(mcp.JSONRPCNotification{
		JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{Method: method},
	})
}

// Rereads says whether a modern client is told when the list of this session changes. That of a session which several
// conversations share does not: what one of them finds would appear in the lists of the others.
func (h *Hub) Rereads(key session.Key) bool {
	if strings.HasPrefix(key.Session, sessions.ByWorkspace) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rereading[key] > 0
}

// Relist returns what is closed when the client of this session has read its list of tools next.
func (h *Hub) Relist(key session.Key) <-chan struct{} {
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

// Relisted says that the client of a session reads its list of tools, or that no call waits for that any more.
func (h *Hub) Relisted(key session.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.lists[key]; c != nil {
		close(c)
		delete(h.lists, key)
	}
}

// tell sends a message, if the client wants it; before the acknowledgement it waits for that. It says whether it was
// sent.
func (l *Listener) tell(n mcp.JSONRPCNotification) bool {
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

// Acknowledge sends the acknowledgement and then what was held back for it.
func (l *Listener) Acknowledge(ack mcp.JSONRPCNotification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if allowed, ok := ack.Params.AdditionalFields["notifications"].(mcp.SubscriptionFilter); ok {
		l.filter = allowed
		if allowed.ToolsListChanged {
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
func (l *Listener) send(n mcp.JSONRPCNotification) bool {
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
func (l *Listener) wants(n mcp.JSONRPCNotification) bool {
	f := l.filter
	switch n.Method {
	case string(mcp.MethodNotificationMessage):
		return l.level != "" && Level.ShouldSendTo(l.level)
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

// Level is that of the log messages which Log sends.
const Level = mcp.LoggingLevelInfo

// Log sends a log message to the clients of a session that listen: to a legacy connection that is the session's own or
// has called it, if wants says so of it, and to each subscriptions/listen that asks for messages.
func (h *Hub) Log(key session.Key, logger, text string, wants func(connection session.Key) bool) {
	n := notification(string(mcp.MethodNotificationMessage),
		map[string]any{"level": Level, "logger": logger, "data": text})
	told := map[session.Key]bool{}
	for _, l := range h.legacy() {
		if told[l.key] || l.key != key && !h.called(l.key, key) || !wants(l.key) {
			continue
		}
		told[l.key] = l.tell(n)
	}
	for _, l := range h.all(func(l *Listener) bool { return l.id != nil && l.key == key }) {
		l.tell(n)
	}
}

// MaxSubscriptions is how many resources one client may subscribe to: each is read after each call.
const MaxSubscriptions = 100

// Watch notes that a subscriptions/listen subscribes to a resource, whose sum is this now. It says whether it may have
// one more.
func (l *Listener) Watch(uri, sum string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) >= MaxSubscriptions {
		return false
	}
	l.seen[uri] = sum
	return true
}

// TellMoved tells each subscriptions/listen of a session which of its resources moved. moved gets an address and the
// sum that the client was told of, and returns the sum now and whether it is another one.
func (h *Hub) TellMoved(key session.Key, moved func(uri, seen string) (string, bool)) {
	for _, l := range h.all(func(l *Listener) bool { return l.id != nil && l.key == key }) {
		l.tellMoved(moved)
	}
}

// tellMoved tells a subscriptions/listen of what moved.
func (l *Listener) tellMoved(moved func(uri, seen string) (string, bool)) {
	l.mu.Lock()
	var uris []string
	for uri, seen := range l.seen {
		if now, yes := moved(uri, seen); yes {
			l.seen[uri] = now
			uris = append(uris, uri)
		}
	}
	l.mu.Unlock()
	slices.Sort(uris)
	for _, uri := range uris {
		l.tell(Updated(uri))
	}
}

// Updated is the notification that a resource changed.
func Updated(uri string) mcp.JSONRPCNotification {
	return notification(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": uri})
}

func notification(method string, fields map[string]any) mcp.JSONRPCNotification {
	return mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION, Notification: mcp.Notification{
		Method: method, Params: mcp.NotificationParams{AdditionalFields: fields},
	}}
}
