package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"codehand/tools/tool"
)

// An elicitClient is a client that a person sits in front of. It keeps all that it received.
type elicitClient struct {
	t       *testing.T
	name    string
	modern  bool
	caps    string                      // of clientCapabilities or initialize
	speaks  string                      // revision of a legacy client; "": 2025-11-25
	send    func(line string)           // legacy: a message that is no call
	request func(line string) nextReply // begins a request

	mu   sync.Mutex
	id   int
	wire []string
}

// A nextReply returns the messages that belong to a request, one after the other.
type nextReply func() []byte

const (
	declared   = `{"elicitation":{}}`
	undeclared = `{}`
)

// The answers of a person.
const (
	sayOnce    = `{"action":"accept","content":{"decision":"allow once"}}`
	saySession = `{"action":"accept","content":{"decision":"allow for this session"}}`
	sayDeny    = `{"action":"accept","content":{"decision":"deny","reason":"too soon"}}`
	sayDecline = `{"action":"decline"}`
	sayCancel  = `{"action":"cancel"}`
)

// always answers every question alike.
func always(answer string) func(string) string { return func(string) string { return answer } }

// never fails when somebody is asked.
func never(t *testing.T) func(string) string {
	return func(q string) string {
		t.Errorf("somebody was asked: %s", q)
		return sayDecline
	}
}

func (c *elicitClient) received(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wire = append(c.wire, string(line))
}

func (c *elicitClient) nextID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id++
	return strconv.Itoa(c.id)
}

// meta is _meta of a modern request.
func (c *elicitClient) meta() string {
	return `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ask-test","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + c.caps
}

// line is a tools/call. more is what params have besides, with a comma before it.
func (c *elicitClient) line(name, args, more string) string {
	meta := ""
	if c.modern {
		meta = `,"_meta":{` + c.meta() + `}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s%s}}`, c.nextID(), name, args, meta, more)
}

// hello is the initialize of a legacy client.
func (c *elicitClient) hello() string {
	return `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + cmp.Or(c.speaks, "2025-11-25") + `","capabilities":` + c.caps + `,"clientInfo":{"name":"ask-test","version":"1"}}}`
}

// An elicitAnswer is the answer to a call.
type elicitAnswer struct {
	text   string
	failed bool
	asked  int
	raw    string
	state  string // modern, with stop: the requestState of the question
	code   int    // of a JSON-RPC error
}

// stop is what a person says who does not answer.
const stop = ""

// call makes a call and puts every question to say, whose answer is that of elicitation/create. With stop a modern call
// ends with its question.
func (c *elicitClient) call(name, args string, say func(question string) string) elicitAnswer {
	c.t.Helper()
	return c.callWith(name, args, "", say)
}

func (c *elicitClient) callWith(name, args, more string, say func(question string) string) elicitAnswer {
	c.t.Helper()
	out := elicitAnswer{}
	for {
		next := c.request(c.line(name, args, more))
		again := false
		for !again {
			msg := next()
			if msg == nil {
				return out // the connection has ended
			}
			c.received(msg)
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct{ Message string }
				Result struct {
					ResultType    string
					RequestState  string
					InputRequests map[string]struct {
						Method string
						Params struct{ Message string }
					}
					IsError bool
					Content []struct{ Text string }
				}
				Error *struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal(msg, &m); err != nil {
				c.t.Fatalf("not JSON on the wire: %s", msg)
			}
			switch {
			case m.Method == "elicitation/create":
				out.asked++
				if answer := say(m.Params.Message); answer != stop {
					c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer))
				}
			case m.Method != "":
			case m.Error != nil:
				out.raw, out.code, out.text, out.failed = string(msg), m.Error.Code, m.Error.Message, true
				return out
			case m.Result.ResultType == "input_required":
				out.asked++
				q, ok := m.Result.InputRequests["answer"]
				if !ok || q.Method != "elicitation/create" {
					c.t.Fatalf("what is asked? %s", msg)
				}
				out.state = m.Result.RequestState
				answer := say(q.Params.Message)
				if answer == stop {
					out.raw = string(msg)
					return out
				}
				more, again = answering(answer, out.state), true
			default:
				out.raw, out.failed = string(msg), m.Result.IsError
				for _, part := range m.Result.Content {
					out.text += part.Text
				}
				return out
			}
		}
	}
}

// answering is what a modern call brings with the answer to a question.
func answering(answer, state string) string {
	return fmt.Sprintf(`,"inputResponses":{"answer":%s},"requestState":%q`, answer, state)
}

// form is the form of the last question.
func (c *elicitClient) form() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range slices.Backward(c.wire) {
		type request struct {
			Params struct{ RequestedSchema json.RawMessage }
		}
		var m struct {
			request
			Result struct{ InputRequests map[string]request }
		}
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			c.t.Fatal(err)
		}
		if form := append(m.Params.RequestedSchema, m.Result.InputRequests["answer"].Params.RequestedSchema...); len(form) > 0 {
			return string(form)
		}
	}
	c.t.Error("nobody was asked")
	return ""
}

// asksNobody fails if anything on the wire asked somebody.
func (c *elicitClient) asksNobody() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wire) == 0 {
		c.t.Error("nothing was recorded")
	}
	for _, l := range c.wire {
		if strings.Contains(l, "elicitation/create") || strings.Contains(l, "input_required") || strings.Contains(l, "requestState") {
			c.t.Errorf("asked on the wire: %s", l)
		}
	}
}

// onPipe is a client on standard input and output.
func onPipe(t *testing.T, w *wire, modern bool, caps string) *elicitClient {
	t.Helper()
	return onPipeAs(t, w, &elicitClient{t: t, name: "stdio", modern: modern, caps: caps})
}

// onPipeAs is onPipe for a client that is ready but for its connection.
func onPipeAs(t *testing.T, w *wire, c *elicitClient) *elicitClient {
	t.Helper()
	c.send = func(l string) {
		if err := w.send(l); err != nil {
			t.Error(err)
		}
	}
	c.request = func(l string) nextReply {
		c.send(l)
		return func() []byte {
			msg, err := w.receive()
			if err != nil && err != io.EOF {
				t.Fatal(err)
			}
			return msg
		}
	}
	if !c.modern {
		if msg := c.request(c.hello())(); !strings.Contains(string(msg), `"serverInfo"`) {
			t.Fatalf("initialize: %s", msg)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// onHTTP is a client of Streamable HTTP.
func onHTTP(t *testing.T, x *httpSite, principal string, modern bool, caps string) *elicitClient {
	t.Helper()
	h := x.client(principal)
	return overHTTP(t, h, modern, caps)
}

func overHTTP(t *testing.T, h *httpClient, modern bool, caps string) *elicitClient {
	t.Helper()
	return overHTTPAs(t, h, &elicitClient{t: t, name: "http", modern: modern, caps: caps})
}

// overHTTPAs is overHTTP for a client that is ready but for its connection.
func overHTTPAs(t *testing.T, h *httpClient, c *elicitClient) *elicitClient {
	t.Helper()
	h.modern = c.modern
	c.send = func(l string) {
		if r := h.do(h.request(context.Background(), http.MethodPost, h.url, l)); r.status != http.StatusAccepted {
			t.Errorf("%s: %+v", l, r)
		}
	}
	c.request = func(l string) nextReply {
		r, err := http.DefaultClient.Do(h.request(t.Context(), http.MethodPost, h.url, l))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Body.Close() })
		if s := r.Header.Get("Mcp-Session-Id"); s != "" {
			h.session = s
		}
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream") {
			return func() []byte {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				return body
			}
		}
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 1<<20)
		return func() []byte {
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					return []byte(data)
				}
			}
			return nil
		}
	}
	if !c.modern {
		if msg := c.request(c.hello())(); !strings.Contains(string(msg), `"serverInfo"`) {
			t.Fatalf("initialize: %s", msg)
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// onSSE is a client of legacy SSE.
func onSSE(t *testing.T, x *httpSite, principal, caps string) (*elicitClient, *sseClient) {
	t.Helper()
	s := x.tap(t, x.client(principal))
	c := &elicitClient{t: t, name: "sse", caps: caps}
	c.send = func(l string) {
		if status := s.send(l); status != http.StatusAccepted {
			t.Errorf("%s: %d", l, status)
		}
	}
	c.request = func(l string) nextReply {
		c.send(l)
		return func() []byte {
			e, ok := <-s.events
			if !ok {
				return nil
			}
			return []byte(e)
		}
	}
	if msg := c.request(c.hello())(); !strings.Contains(string(msg), `"serverInfo"`) {
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

// eachWire runs a test with a client on each transport and era in which somebody can be asked.
func eachWire(t *testing.T, caps string, tools func(*runCount) []tool.Tool, test func(t *testing.T, c *elicitClient, runs *runCount)) {
	for _, k := range []wireKind{{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}} {
		t.Run(k.transport+"/"+k.era, func(t *testing.T) {
			t.Parallel()
			runs, modern := &runCount{}, k.era == "modern"
			if k.transport == "stdio" {
				f := start(t, setup{tools: tools(runs), settings: askingSettings(), silent: true})
				test(t, onPipe(t, f.wire, modern, caps), runs)
				return
			}
			x := serveHTTP(t, siteSetup{tools: tools(runs), settings: askingSettings()})
			test(t, onHTTP(t, x, "", modern, caps), runs)
		})
	}
}
