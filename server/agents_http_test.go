package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/server/auth"
	"codehand/server/replaytest"
)

// A sub-agent has the directories and the scopes of the principal whose call started it, and nothing of others.
func TestAgentOfPrincipal(t *testing.T) {
	t.Parallel()
	m := &scripted{script: map[string][]scriptTurn{}}
	x := serveHTTP(t, siteSetup{
		model: m, principals: []string{"alice", "bob", "reader"}, values: map[string]auth.Values{"reader": {Scopes: []string{"mcp:read"}}},
		settings: map[string]string{"permissions.mode": "acceptEdits", "sandbox.policy": "off", "permissions.ask_fallback": "client"},
	})
	at := func(who string) string { return filepath.ToSlash(filepath.Join(x.data, "workspaces", who, "a.txt")) }
	others := map[string]string{"alice": "bob", "bob": "alice", "reader": "alice"}
	for who, other := range others {
		m.script["FOR-"+who] = []scriptTurn{
			{calls: []string{
				`write_file {"file_path":"a.txt","content":"of ` + who + `\n"}`, `read_file {"file_path":"` + at(other) + `"}`,
				`write_file {"file_path":"` + at(other) + `","content":"stolen"}`, `run_shell {"command":"echo x > b.txt"}`, `list_files {"pattern":"*"}`,
			}},
			{text: "done"},
		}
	}
	for _, who := range []string{"alice", "bob", "reader"} {
		c := x.client(who).Hello()
		if got := c.Does("agent", `{"prompt":"FOR-`+who+`"}`); !strings.HasPrefix(got, "done\n[agent ") {
			t.Fatalf("%s: %s", who, got)
		}
		results := m.results("FOR-"+who, 1)
		if len(results) != 5 {
			t.Fatalf("%s: %q", who, results)
		}
		want := []string{`Created a\.txt`, `OUTSIDE_ROOTS: `, `(OUTSIDE_ROOTS|PERMISSION_DENIED): `, `.`, `a\.txt`}
		if who == "reader" {
			none := `(TOOL_DISABLED|TOOL_UNKNOWN|SCOPE_MISSING): `
			want = []string{none, `OUTSIDE_ROOTS: `, none, none, `.`}
			for _, tool := range m.heard["FOR-reader"][0].Tools {
				if tool.Name == "write_file" || tool.Name == "edit_file" || tool.Name == "run_shell" || tool.Name == "web_fetch" {
					t.Errorf("a sub-agent of a token for reading is given %s", tool.Name)
				}
			}
		}
		other := others[who]
		for i, text := range results {
			if !regexp.MustCompile(`^(?s)` + want[i]).MatchString(text) {
				t.Errorf("%s: call %d got %q, want %s", who, i, text, want[i])
			}
			if strings.Contains(text, "of "+other) {
				t.Errorf("%s sees what is %s's: %s", who, other, text)
			}
		}
	}
	for who, want := range map[string]string{"alice": "of alice\n", "bob": "of bob\n", "reader": ""} {
		if b, _ := os.ReadFile(at(who)); string(b) != want {
			t.Errorf("%s's file holds %q, want %q", who, b, want)
		}
	}
	if _, err := os.Stat(filepath.Join(x.data, "workspaces", "reader", "b.txt")); err == nil {
		t.Error("a token for reading has run a command through a sub-agent")
	}
}

// Each principal has limits of its own for sub-agents. A principal cannot write to the sub-agents of another one.
func TestAgentLimitsOfPrincipals(t *testing.T) {
	t.Parallel()
	begun, let := make(chan struct{}), make(chan struct{})
	m := &scripted{script: map[string][]scriptTurn{
		"HELD": {{wait: func(context.Context) error { close(begun); <-let; return nil }, text: "held"}},
	}}
	for i := range 5 {
		m.script[fmt.Sprintf("SHORT%d", i)] = []scriptTurn{{text: "short"}}
	}
	x := serveHTTP(t, siteSetup{model: m, principals: []string{"alice", "bob"}, settings: map[string]string{
		"agent.max_parallel": "1", "agent.max_per_hour": "3", "sandbox.policy": "off", "permissions.ask_fallback": "client",
	}})
	alice, bob := x.client("alice").Hello(), x.client("bob").Hello()
	got := alice.Does("agent", `{"prompt":"HELD","name":"mine","run_in_background":true}`)
	<-begun
	id := regexp.MustCompile(`agent_[a-z2-7]{12}`).FindString(got)
	if id == "" {
		t.Fatal(got)
	}
	// All of alice's room is taken, and bob has his own.
	for i := range 3 {
		if got := bob.Does("agent", fmt.Sprintf(`{"prompt":"SHORT%d"}`, i)); !strings.HasPrefix(got, "short\n[agent ") {
			t.Errorf("bob, %d: %s", i, got)
		}
	}
	if got := bob.Does("agent", `{"prompt":"SHORT3"}`); !strings.HasPrefix(got, "! AGENT_LIMIT: 3 sub-agents were started within the last hour") || len(m.heard["SHORT3"]) > 0 {
		t.Errorf("bob's fourth: %s", got)
	}
	for _, to := range []string{id, "mine"} {
		if got := bob.Does("send_message", `{"to":"`+to+`","message":"obey bob"}`); !strings.HasPrefix(got, "! AGENT_UNKNOWN: ") || strings.Contains(got, "(mine)") {
			t.Errorf("bob writes to alice's: %s", got)
		}
	}
	close(let)
	if got := alice.Does("agent", `{"prompt":"SHORT4"}`); !strings.HasPrefix(got, "short\n[agent ") {
		t.Errorf("alice's second: %s", got)
	}
}

// The connections to a model end with the server.
func TestAgentModelIsLeft(t *testing.T) {
	t.Parallel()
	var open atomic.Int32
	model := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	model.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	model.Start()
	defer model.Close()
	x := serveHTTP(t, siteSetup{settings: map[string]string{"agent.api.provider": "openai", "agent.api.model": "m", "agent.api.base_url": model.URL}})
	if got := x.client("").Hello().Does("agent", `{"prompt":"x"}`); !strings.HasPrefix(got, "fine\n[agent ") || open.Load() != 1 {
		t.Fatalf("%d connections: %s", open.Load(), got)
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	replaytest.Until(t, "the connection is closed", func() bool { return open.Load() == 0 })
}
