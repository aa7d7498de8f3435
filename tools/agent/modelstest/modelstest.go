// Package modelstest is a scripted model on loopback, for tests. It speaks Anthropic Messages and OpenAI Chat
// Completions, both streamed, on one address: the path of a request says which.
//
// It checks nothing: tests look at its Requests. A Script serves one conversation; a function of one's own serves many
// at once.
package modelstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"codehand/tools/agent/loop"
)

// A Server is a model. Close is called at the end of the test.
type Server struct {
	URL  string          // the base URL for both formats
	Hung <-chan struct{} // a value for each answer that has come to its Hang

	mu       sync.Mutex
	requests []Request
}

// A Request is what a client sent.
type Request struct {
	N      int // requests before it
	Path   string
	Header http.Header
	Body   []byte
}

// A Turn is the answer to one request. Without Status or Raw it is a stream with Text, then Calls.
type Turn struct {
	Text      string
	Calls     []Call
	Stop      string      // a Stop constant of loop; "": StopEnd
	Tokens    loop.Tokens // what the answer says it cost
	Uncounted bool        // nothing says what it cost

	Status int               // an answer that is an error, with Header and Raw as its body
	Header map[string]string // of the answer
	Raw    string            // the body, byte for byte

	Break bool // the connection breaks in the middle of the answer
	End   bool // the answer ends early, as if it were whole
	Hang  bool // after half of the answer nothing comes until the client leaves
}

// A Call is a tool call in a Turn.
type Call struct{ ID, Name, Arguments string }

// Overloaded and the like are answers that clients must cope with.
var (
	Overloaded = Turn{Status: 529, Raw: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}
	Full       = Turn{Status: 400, Raw: `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded",` +
		`"message":"prompt is too long: 207791 tokens > 200000 maximum"}}`}
)

// Script answers with the turns in order, and refuses what comes after.
func Script(turns ...Turn) func(Request) Turn {
	return func(r Request) Turn {
		if r.N < len(turns) {
			return turns[r.N]
		}
		return Turn{Status: 400, Raw: fmt.Sprintf(`{"error":{"type":"invalid_request_error","message":"the script has %d turns"}}`, len(turns))}
	}
}

// Start starts a model that answers as next says. next is called once for each request, for several at once.
func Start(t testing.TB, next func(Request) Turn) *Server {
	t.Helper()
	hung, closing := make(chan struct{}, 1000), make(chan struct{})
	s := &Server{Hung: hung}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		turn := next(s.note(r, body))
		for k, v := range turn.Header {
			w.Header().Set(k, v)
		}
		if turn.Status != 0 {
			if w.Header().Get("Content-Type") == "" {
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(turn.Status)
			_, _ = io.WriteString(w, turn.Raw)
			return
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		events := []string{turn.Raw}
		switch {
		case turn.Raw != "":
		case strings.HasSuffix(r.URL.Path, "/messages"):
			events = turn.messages()
		default:
			events = turn.chat()
		}
		for i, e := range events {
			if half := i == len(events)/2; half && turn.Hang {
				hung <- struct{}{}
				select {
				case <-r.Context().Done():
				case <-closing:
				}
				return
			} else if half && turn.Break {
				panic(http.ErrAbortHandler)
			} else if half && turn.End {
				return
			}
			_, _ = io.WriteString(w, e)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(func() {
		close(closing)
		h.Close()
	})
	s.URL = h.URL
	return s
}

// Requests returns what was sent so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) note(r *http.Request, body []byte) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := Request{len(s.requests), r.URL.Path, r.Header.Clone(), body}
	s.requests = append(s.requests, q)
	return q
}

func event(name string, data any) string {
	text, _ := json.Marshal(data)
	if name != "" {
		name = "event: " + name + "\n"
	}
	return name + "data: " + string(text) + "\n\n"
}

type object = map[string]any

// messages is a turn as events of Anthropic Messages.
func (t Turn) messages() []string {
	usage := object{}
	if !t.Uncounted {
		usage = object{"input_tokens": t.Tokens.Input, "cache_read_input_tokens": t.Tokens.CacheRead, "cache_creation_input_tokens": t.Tokens.CacheWrite, "output_tokens": 1}
	}
	events := []string{
		event("message_start", object{"type": "message_start", "message": object{"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "usage": usage}}),
		event("ping", object{"type": "ping"}),
	}
	block := func(index int, start object, kind, field, text string, size int) {
		events = append(events, event("content_block_start", object{"type": "content_block_start", "index": index, "content_block": start}))
		for _, p := range pieces(text, size) {
			events = append(events, event("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": object{"type": kind, field: p}}))
		}
		events = append(events, event("content_block_stop", object{"type": "content_block_stop", "index": index}))
	}
	n := 0
	if t.Text != "" {
		block(n, object{"type": "text", "text": ""}, "text_delta", "text", t.Text, 9)
		n++
	}
	for _, c := range t.Calls {
		block(n, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, "input_json_delta", "partial_json", c.Arguments, 7)
		n++
	}
	stop := map[string]string{loop.StopLength: "max_tokens", loop.StopFull: "model_context_window_exceeded", loop.StopRefuse: "refusal", loop.StopPause: "pause_turn"}[t.Stop]
	if stop == "" {
		stop = "end_turn"
		if len(t.Calls) > 0 {
			stop = "tool_use"
		}
	}
	delta := object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}}
	if !t.Uncounted {
		delta["usage"] = object{"output_tokens": t.Tokens.Output}
	}
	return append(events, event("message_delta", delta), event("message_stop", object{"type": "message_stop"}))
}

// chat is a turn as chunks of OpenAI Chat Completions.
func (t Turn) chat() []string {
	var events []string
	chunk := func(delta object, finish any) {
		events = append(events, event("", object{
			"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}, "usage": nil,
		}))
	}
	chunk(object{"role": "assistant", "content": nil}, nil)
	for _, p := range pieces(t.Text, 9) {
		chunk(object{"content": p}, nil)
	}
	for i, c := range t.Calls {
		chunk(object{"tool_calls": []any{object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""}}}}, nil)
		for _, p := range pieces(c.Arguments, 7) {
			chunk(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	finish := map[string]string{loop.StopLength: "length", loop.StopRefuse: "content_filter"}[t.Stop]
	if finish == "" {
		finish = "stop"
		if len(t.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	chunk(object{}, finish)
	if !t.Uncounted {
		events = append(events, event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": []any{}, "usage": object{
			"prompt_tokens":         t.Tokens.Input + t.Tokens.CacheRead,
			"completion_tokens":     t.Tokens.Output,
			"prompt_tokens_details": object{"cached_tokens": t.Tokens.CacheRead},
		}}))
	}
	return append(events, "data: [DONE]\n\n")
}

// pieces cuts a text into pieces of about size bytes, between characters.
func pieces(text string, size int) (list []string) {
	for len(text) > size {
		n := size
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		list, text = append(list, text[:n]), text[n:]
	}
	if text != "" {
		list = append(list, text)
	}
	return list
}
