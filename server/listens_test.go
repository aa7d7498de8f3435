package server

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`

func listenLine(id, filter string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"notifications":` + filter + `,"_meta":{` + modernMeta + `}}}`
}

// changeList makes mcp-go broadcast that the list of tools changed, as a mounted server will.
func (f *fixture) changeList() {
	f.server.calls.Gate.Server.AddTools(mcpserver.ServerTool{
		Tool: mcp.Tool{Name: "late"},
		Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("late"), nil
		},
	})
}

// line reads one line that must be on the wire.
func (f *fixture) line(t *testing.T) string {
	t.Helper()
	l, err := f.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return string(l)
}

// TestListenBeforeTheEnd: a listen that is sent just before the input ends is completed, and holds up nothing.
func TestListenBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for range 100 {
		f := start(t, setup{silent: true})
		if err := f.Send(listenLine("5", `{"toolsListChanged":true}`)); err != nil {
			t.Fatal(err)
		}
		_ = f.In.Close()
		for last := ""; ; {
			l, err := f.Receive()
			if err == nil {
				last = string(l)
				continue
			}
			if err != io.EOF || !strings.Contains(last, `"id":5,"result":`) {
				t.Fatalf("%v after %s", err, last)
			}
			break
		}
	}
}

// TestFailedInitialize: a handshake that failed is none, so nothing is sent to a client without being asked for.
func TestFailedInitialize(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true})
	if err := f.Send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2026-07-28","capabilities":{},"clientInfo":{"name":"t","version":"1"},"_meta":{` + modernMeta + `}}}`); err != nil {
		t.Fatal(err)
	}
	if l := f.line(t); !strings.Contains(l, "-32601") {
		t.Fatalf("got %s", l)
	}
	f.changeList()
	_ = f.In.Close()
	if l, err := f.Receive(); err != io.EOF {
		t.Errorf("got %s", l)
	}
}

// TestNobodyListens: a modern client that asked for nothing gets nothing but its answers.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true, modern: true})
	for range 10 {
		f.changeList()
		if err := f.Send(`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}`); err != nil {
			t.Fatal(err)
		}
		if l := f.line(t); !strings.Contains(l, `"id":7,"result":`) {
			t.Fatalf("got %s", l)
		}
	}
	_ = f.In.Close()
	if l, err := f.Receive(); err != io.EOF {
		t.Errorf("got %s", l)
	}
}

// TestListenIsFiltered: a broadcast reaches each listen that asked for it, tagged with its id, and no other one.
func TestListenIsFiltered(t *testing.T) {
	t.Parallel()
	f := start(t, setup{silent: true})
	send := func(l string) {
		t.Helper()
		if err := f.Send(l); err != nil {
			t.Fatal(err)
		}
	}
	send(listenLine(`"a"`, `{"toolsListChanged":true}`))
	if l := f.line(t); !strings.Contains(l, "acknowledged") || !strings.Contains(l, `"io.modelcontextprotocol/subscriptionId":"a"`) {
		t.Fatalf("got %s", l)
	}
	send(listenLine("9007199254740993", `{"toolsListChanged":true,"resourcesListChanged":true}`))
	if l := f.line(t); !strings.Contains(l, "acknowledged") || !strings.Contains(l, "9007199254740993") {
		t.Fatalf("got %s", l)
	}
	f.changeList()
	tagged := map[string]bool{}
	for range 2 {
		var n struct {
			Method string `json:"method"`
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			} `json:"params"`
		}
		if err := json.Unmarshal([]byte(f.line(t)), &n); err != nil {
			t.Fatal(err)
		}
		if n.Method != "notifications/tools/list_changed" {
			t.Errorf("method %s", n.Method)
		}
		tagged[string(n.Params.Meta["io.modelcontextprotocol/subscriptionId"])] = true
	}
	if !tagged[`"a"`] || !tagged["9007199254740993"] {
		t.Errorf("tags %v", tagged)
	}

	// A listen that is cancelled gets no answer and nothing more; the other one goes on.
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if l := f.line(t); !strings.Contains(l, `"id":1,`) {
		t.Fatalf("got %s", l)
	}
	f.changeList()
	plain, other := f.line(t), f.line(t)
	if strings.Contains(plain, "subscriptionId") || !strings.Contains(other, "9007199254740993") {
		t.Errorf("a client that initialized gets it untagged, then the listen: %s%s", plain, other)
	}
	_ = f.In.Close()
	if l := f.line(t); !strings.Contains(l, `"id":9007199254740993,"result":`) || !strings.Contains(l, `"resultType":"complete"`) {
		t.Errorf("the listen is completed at the end: %s", l)
	}
}
