package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"codehand/server/replaytest"
	"codehand/tools/tool"
)

// onHTTP is a client of Streamable HTTP.
func onHTTP(t *testing.T, x *httpSite, principal string, modern bool, caps string) *replaytest.ElicitClient {
	t.Helper()
	h := x.client(principal)
	return replaytest.OverHTTP(t, h, modern, caps)
}

// onSSE is a client of legacy SSE.
func onSSE(t *testing.T, x *httpSite, principal, caps string) (*replaytest.ElicitClient, *sseClient) {
	t.Helper()
	s := x.tap(t, x.client(principal))
	c := &replaytest.ElicitClient{T: t, Name: "sse", Caps: caps}
	c.Send = func(l string) {
		if status := s.send(l); status != http.StatusAccepted {
			t.Errorf("%s: %d", l, status)
		}
	}
	c.Request = func(l string) replaytest.NextReply {
		c.Send(l)
		return func() []byte {
			e, ok := <-s.events
			if !ok {
				return nil
			}
			return []byte(e)
		}
	}
	if msg := c.Request(c.Hello())(); !strings.Contains(string(msg), `"serverInfo"`) {
		t.Fatalf("initialize: %s", msg)
	}
	return c, s
}

// changing is a tool that a mode asks about, and that says what it was told.
func changing(name string, runs *runCount) tool.Tool {
	return fixtureTool(name, tool.Traits{Local: true}, func(_ context.Context, _ tool.Env, in word) (tool.Result, error) {
		runs.add()
		return tool.Result{Text: "did " + in.Text}, nil
	})
}

// A runCount counts.
type runCount struct {
	mu sync.Mutex
	n  int
}

func (c *runCount) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *runCount) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// asking are the settings under which a default ask is put to a person.
func askingSettings(more ...string) map[string]string {
	m := map[string]string{"permissions.ask_fallback": "deny", "permissions.mode": "default", "tools.deferral": "off"}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

// A wireKind is a way to connect.
type wireKind struct{ transport, era string }

// eachWire runs a test with a client on each transport and era on which the server can ask a person.
func eachWire(t *testing.T, caps string, tools func(*runCount) []tool.Tool, test func(t *testing.T, c *replaytest.ElicitClient, runs *runCount)) {
	for _, k := range []wireKind{{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}, {"sse", "legacy"}} {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			runs, modern := &runCount{}, k.era == "modern"
			if k.transport == "stdio" {
				f := start(t, setup{tools: tools(runs), settings: askingSettings(), silent: true})
				test(t, replaytest.OnPipe(t, f.Wire, modern, caps), runs)
				return
			}
			x := serveHTTP(t, siteSetup{tools: tools(runs), settings: askingSettings()})
			if k.transport == "sse" {
				c, _ := onSSE(t, x, "", caps)
				test(t, c, runs)
				return
			}
			test(t, onHTTP(t, x, "", modern, caps), runs)
		})
	}
}
