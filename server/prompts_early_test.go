package server

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
	var h hub
	p := &heardPeer{}
	key := session.Key{Principal: "alice", Session: "h:handle-one"}
	l := &listener{key: key, id: json.RawMessage("7"), peer: p}
	h.add(l)
	for range 2 {
		h.announce(key, mcp.MethodNotificationPromptsListChanged)
		h.announce(key, mcp.MethodNotificationToolsListChanged)
	}
	h.announce(session.Key{Principal: "alice", Session: "h:handle-two"}, mcp.MethodNotificationPromptsListChanged)
	if len(p.told) > 0 {
		t.Errorf("before the acknowledgement: %q", p.told)
	}
	ack := mcp.JSONRPCNotification{Notification: mcp.Notification{Method: "notifications/subscriptions/acknowledged"}}
	ack.Params.AdditionalFields = map[string]any{"notifications": mcp.SubscriptionFilter{PromptsListChanged: true}}
	l.acknowledge(ack)
	if len(p.told) != 2 || !strings.Contains(p.told[0], "acknowledged") || !strings.Contains(p.told[1], promptsChanged) {
		t.Fatalf("it was told %q", p.told)
	}
	for _, line := range p.told {
		if !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":7`) {
			t.Errorf("without its id: %s", line)
		}
	}
}
