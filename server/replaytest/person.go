package replaytest

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
)

// An ElicitClient is a client that a person sits in front of. It keeps all that it received.
type ElicitClient struct {
	T       *testing.T
	Name    string
	Modern  bool
	Caps    string                      // of clientCapabilities or initialize
	Speaks  string                      // revision of a legacy client; "": 2025-11-25
	Send    func(line string)           // legacy: a message that is no call
	Request func(line string) NextReply // begins a request

	Mu   sync.Mutex
	id   int
	Wire []string
}

// A NextReply returns the messages that belong to a request, one after the other.
type NextReply func() []byte

// The abilities of a client: it can ask a person, or it cannot.
const (
	Declared   = `{"elicitation":{}}`
	Undeclared = `{}`
)

// The answers of a person.
const (
	SayOnce    = `{"action":"accept","content":{"decision":"allow once"}}`
	SaySession = `{"action":"accept","content":{"decision":"allow for this session"}}`
	SayDeny    = `{"action":"accept","content":{"decision":"deny","reason":"too soon"}}`
	SayDecline = `{"action":"decline"}`
	SayCancel  = `{"action":"cancel"}`
)

// Always answers every question alike.
func Always(answer string) func(string) string { return func(string) string { return answer } }

// Never fails when the person is asked.
func Never(t *testing.T) func(string) string {
	return func(q string) string {
		t.Errorf("somebody was asked: %s", q)
		return SayDecline
	}
}

// Received keeps a message of the server.
func (c *ElicitClient) Received(line []byte) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Wire = append(c.Wire, string(line))
}

func (c *ElicitClient) nextID() string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.id++
	return strconv.Itoa(c.id)
}

// Meta is _meta of a modern request.
func (c *ElicitClient) Meta() string {
	return `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"ask-test","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + c.Caps
}

// Line is a tools/call. more is what params have besides, with a comma before it.
func (c *ElicitClient) Line(name, args, more string) string {
	meta := ""
	if c.Modern {
		meta = `,"_meta":{` + c.Meta() + `}`
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s%s}}`,
		c.nextID(), name, args, meta, more)
}

// Hello is the initialize of a legacy client.
func (c *ElicitClient) Hello() string {
	return `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"` + cmp.Or(c.Speaks,
		"2025-11-25") + `","capabilities":` + c.Caps + `,"clientInfo":{"name":"ask-test","version":"1"}}}`
}

// An ElicitAnswer is the answer to a call.
type ElicitAnswer struct {
	Text   string
	Failed bool
	Asked  int
	Raw    string
	State  string // modern, with stop: the requestState of the question
	Code   int    // of a JSON-RPC error
}

// Stop is what a person says who does not answer.
const Stop = ""

// Call makes a call and puts every question to say, whose answer is that of elicitation/create. With stop a modern call
// ends with its question.
func (c *ElicitClient) Call(name, args string, say func(question string) string) ElicitAnswer {
	c.T.Helper()
	return c.CallWith(name, args, "", say)
}

// CallWith is Call with more in the params, which begins with a comma; "": nothing.
func (c *ElicitClient) CallWith(name, args, more string, say func(question string) string) ElicitAnswer {
	c.T.Helper()
	out := ElicitAnswer{}
	for {
		next := c.Request(c.Line(name, args, more))
		again := false
		for !again {
			msg := next()
			if msg == nil {
				return out // the connection has ended
			}
			c.Received(msg)
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
				c.T.Fatalf("not JSON on the wire: %s", msg)
			}
			switch {
			case m.Method == "elicitation/create":
				out.Asked++
				if answer := say(m.Params.Message); answer != Stop {
					c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, answer))
				}
			case m.Method == "ping":
				c.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
			case m.Method != "":
			case m.Error != nil:
				out.Raw, out.Code, out.Text, out.Failed = string(msg), m.Error.Code, m.Error.Message, true
				return out
			case m.Result.ResultType == "input_required":
				out.Asked++
				id := "answer" // of a question of the pipeline; of one during the work of a call there is one here
				for only := range m.Result.InputRequests {
					id = only
				}
				q, ok := m.Result.InputRequests[id]
				if !ok || len(m.Result.InputRequests) > 1 || q.Method != "elicitation/create" {
					c.T.Fatalf("what is asked? %s", msg)
				}
				out.State = m.Result.RequestState
				answer := say(q.Params.Message)
				if answer == Stop {
					out.Raw = string(msg)
					return out
				}
				more, again = fmt.Sprintf(`,"inputResponses":{%q:%s},"requestState":%q`, id, answer, out.State), true
			default:
				out.Raw, out.Failed = string(msg), m.Result.IsError
				for _, part := range m.Result.Content {
					out.Text += part.Text
				}
				return out
			}
		}
	}
}

// Answering is what a modern call brings with the answer to a question.
func Answering(answer, state string) string {
	return fmt.Sprintf(`,"inputResponses":{"answer":%s},"requestState":%q`, answer, state)
}

// Form is the form of the last question.
func (c *ElicitClient) Form() string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, l := range slices.Backward(c.Wire) {
		type request struct {
			Params struct{ RequestedSchema json.RawMessage }
		}
		var m struct {
			request
			Result struct{ InputRequests map[string]request }
		}
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			c.T.Fatal(err)
		}
		if form := append(m.Params.RequestedSchema,
			m.Result.InputRequests["answer"].Params.RequestedSchema...); len(form) > 0 {
			return string(form)
		}
	}
	c.T.Error("nobody was asked")
	return ""
}

// AsksNobody fails if the server asked a question on the wire.
func (c *ElicitClient) AsksNobody() {
	c.T.Helper()
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if len(c.Wire) == 0 {
		c.T.Error("nothing was recorded")
	}
	for _, l := range c.Wire {
		if strings.Contains(l, "elicitation/create") || strings.Contains(l, "input_required") ||
			strings.Contains(l, "requestState") {
			c.T.Errorf("asked on the wire: %s", l)
		}
	}
}

// OnPipe is a client on standard input and output.
func OnPipe(t *testing.T, w *Wire, modern bool, caps string) *ElicitClient {
	t.Helper()
	return OnPipeAs(t, w, &ElicitClient{T: t, Name: "stdio", Modern: modern, Caps: caps})
}

// OnPipeAs is onPipe for a client that is ready but for its connection.
func OnPipeAs(t *testing.T, w *Wire, c *ElicitClient) *ElicitClient {
	t.Helper()
	c.Send = func(l string) {
		if err := w.Send(l); err != nil {
			t.Error(err)
		}
	}
	c.Request = func(l string) NextReply {
		c.Send(l)
		return func() []byte {
			msg, err := w.Receive()
			if err != nil && err != io.EOF {
				t.Fatal(err)
			}
			return msg
		}
	}
	if !c.Modern {
		if msg := c.Request(c.Hello())(); !strings.Contains(string(msg), `"serverInfo"`) {
			t.Fatalf("initialize: %s", msg)
		}
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// OverHTTP is a client of Streamable HTTP, by way of h.
func OverHTTP(t *testing.T, h *HTTPClient, modern bool, caps string) *ElicitClient {
	t.Helper()
	return OverHTTPAs(t, h, &ElicitClient{T: t, Name: "http", Modern: modern, Caps: caps})
}

// OverHTTPAs is overHTTP for a client that is ready but for its connection.
func OverHTTPAs(t *testing.T, h *HTTPClient, c *ElicitClient) *ElicitClient {
	t.Helper()
	h.Modern = c.Modern
	c.Send = func(l string) {
		if r := h.Do(h.Request(context.Background(), http.MethodPost, h.URL, l)); r.Status != http.StatusAccepted {
			t.Errorf("%s: %+v", l, r)
		}
	}
	c.Request = func(l string) NextReply {
		r, err := http.DefaultClient.Do(h.Request(t.Context(), http.MethodPost, h.URL, l))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Body.Close() })
		if s := r.Header.Get("Mcp-Session-Id"); s != "" {
			h.Session = s
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
	if !c.Modern {
		if msg := c.Request(c.Hello())(); !strings.Contains(string(msg), `"serverInfo"`) {
			t.Fatalf("initialize: %s", msg)
		}
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// QuestionID is the raw id of the last elicitation/create on the wire.
func (c *ElicitClient) QuestionID() string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for i := len(c.Wire) - 1; i >= 0; i-- {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal([]byte(c.Wire[i]), &m) == nil && m.Method == "elicitation/create" {
			return string(m.ID)
		}
	}
	c.T.Fatal("nobody was asked")
	return ""
}

// With makes the second half of a modern call: the answer with the state.
func (c *ElicitClient) With(name, args, answer, state string) ElicitAnswer {
	c.T.Helper()
	return c.CallWith(name, args, Answering(answer, state), Always(Stop))
}

// Altered returns s with another last letter.
func Altered(s string) string {
	if strings.HasSuffix(s, "a") {
		return s[:len(s)-1] + "b"
	}
	return s[:len(s)-1] + "a"
}
