package hub

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/tools/session"
)

// A heardPeer keeps what it is told, a line each.
type heardPeer struct{ told []string }

func (p *heardPeer) Notify(method string, params any) error {
	line, err := jsonrpc.NoticeLine(method, params)
	p.told = append(p.told, string(line))
	return err
}

func (p *heardPeer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (p *heardPeer) Gone() <-chan struct{} { return nil }

// TestPromptsChangedEarly: there were other prompts when a listen was open and not acknowledged yet. It was noted that its
// client was told, but nothing was sent.
func TestPromptsChangedEarly(t *testing.T) {
	t.Parallel()
	var h Hub
	p := &heardPeer{}
	key := session.Key{Principal: "alice", Session: "h:handle-one"}
	l := h.Subscribe(key, json.RawMessage("7"), p, "")
	defer l.End()
	for range 2 {
		h.Announce(key, mcp.MethodNotificationPromptsListChanged)
		h.Announce(key, mcp.MethodNotificationToolsListChanged)
	}
	h.Announce(session.Key{Principal: "alice", Session: "h:handle-two"}, mcp.MethodNotificationPromptsListChanged)
	if len(p.told) > 0 {
		t.Errorf("before the acknowledgement: %q", p.told)
	}
	ack := mcp.JSONRPCNotification{Notification: mcp.Notification{Method: "notifications/subscriptions/acknowledged"}}
	ack.Params.AdditionalFields = map[string]any{"notifications": mcp.SubscriptionFilter{PromptsListChanged: true}}
	l.Acknowledge(ack)
	if len(p.told) != 2 || !strings.Contains(p.told[0], "acknowledged") || !strings.Contains(p.told[1], mcp.MethodNotificationPromptsListChanged) {
		t.Fatalf("it was told %q", p.told)
	}
	for _, line := range p.told {
		if !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":7`) {
			t.Errorf("without its id: %s", line)
		}
	}
}

// A hearer is a peer that counts what it is sent, or cannot be sent anything.
type hearer struct {
	heard int
	dead  bool
}

func (h *hearer) Notify(string, any) error {
	if h.dead {
		return jsonrpc.ErrAnswered
	}
	h.heard++
	return nil
}

func (h *hearer) Call(context.Context, string, any) (json.RawMessage, error) {
	return nil, jsonrpc.ErrNoCalls
}

func (h *hearer) Gone() <-chan struct{} { return nil }

// TestOneStreamHears: a legacy client gets a message on one of its streams, however many it has open, and another client on
// its own. The protocol forbids to send it on several.
func TestOneStreamHears(t *testing.T) {
	t.Parallel()
	var h Hub
	one, two := session.Key{Principal: "alice", Session: "m:1"}, session.Key{Principal: "alice", Session: "m:2"}
	first, second, broken, other := &hearer{}, &hearer{}, &hearer{dead: true}, &hearer{}
	h.Connect(one, first)
	leave := h.Connect(one, second)
	h.Connect(one, broken)
	h.Connect(two, other)
	n := mcp.JSONRPCNotification{Notification: mcp.Notification{Method: mcp.MethodNotificationToolsListChanged}}
	h.Broadcast(n)
	if first.heard != 0 || second.heard != 1 || other.heard != 1 {
		t.Errorf("an old stream hears %d, the newest that lives %d, another client's %d", first.heard, second.heard, other.heard)
	}
	leave()
	h.Broadcast(n)
	if first.heard != 1 || second.heard != 1 || other.heard != 2 {
		t.Errorf("without it: %d, %d, %d", first.heard, second.heard, other.heard)
	}
}

// TestNoSubscriptions: what the Store said of a connection is not remembered if the connection may have subscribed
// meanwhile, or has no stream here.
func TestNoSubscriptions(t *testing.T) {
	t.Parallel()
	var h Hub
	key, other := session.Key{Principal: "alice", Session: "c:one"}, session.Key{Principal: "alice", Session: "c:two"}
	known := func(key session.Key) bool { known, _ := h.NoSubscriptions(key); return known }
	note := func(key session.Key) (remember func()) { _, remember = h.NoSubscriptions(key); return remember }
	stop := h.Connect(key, &heardPeer{})

	if note(other)(); known(other) {
		t.Error("a connection without a stream is remembered")
	}
	listen := h.Subscribe(other, json.RawMessage("7"), &heardPeer{}, "")
	if note(other)(); known(other) {
		t.Error("a subscriptions/listen counts as a connection")
	}
	listen.End()
	if known(key) {
		t.Error("known before the Store was asked")
	}
	late := note(key)
	if note(key)(); !known(key) || known(other) {
		t.Error("what the Store said is not remembered, or for another connection")
	}
	h.AskSubscriptions(key)
	if known(key) {
		t.Error("known after the connection has subscribed")
	}
	if late(); known(key) {
		t.Error("an answer of the Store from before the connection subscribed is remembered")
	}
	late = note(key)
	if late(); !known(key) {
		t.Error("not remembered again")
	}
	second := h.Connect(key, &heardPeer{})
	if second(); !known(key) {
		t.Error("forgotten while the connection has a stream")
	}
	stop()
	if known(key) {
		t.Error("known after the last stream ended")
	}
	stop = h.Connect(key, &heardPeer{})
	defer stop()
	if late(); known(key) {
		t.Error("an answer from before the last stream ended is remembered")
	}
}
