package blackbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A scriptedModel stands for the model of a real client, on loopback. It looks for a tool that is not listed and calls
// it as tool_search says, then asks for what is too long for one result, calls a last one, through call_tool if it is not
// listed, and ends the conversation.
type scriptedModel struct {
	url string

	mu       sync.Mutex
	moves    []move   // so far; the client has the result of all but the last
	results  []string // what the client handed back, in the order of the moves
	done     bool     // it said its last words
	requests []string // for the log: what was asked, shortened
}

// A move is what the model answers: a call, or its last words.
type move struct {
	namespace, name string
	args            string
	ownSearch       bool   // it is a search of the client's own
	query           string // of the first step: what is searched for before it; "": the working directory
	code            bool   // it is made in JavaScript
	last            bool
}

// An offered is a tool as the client shows it to the model.
type offered struct{ namespace, name string }

// heard is a request of the client as far as it matters.
type heard struct {
	tools     []offered
	ownSearch string   // the name of the client's own search for tools; "": it has none
	code      bool     // all calls are made in JavaScript, also the search
	results   []string // of all calls so far
}

// A form is one way in which clients talk to models.
type form struct {
	hear func(r *http.Request, body []byte) (heard, bool) // false: it is no request for an answer
	say  func(w http.ResponseWriter, r *http.Request, body []byte, n int, m move)
}

// forms are those of the clients, by the name that their scripts give.
var forms = map[string]form{
	"anthropic": {hearAnthropic, sayAnthropic},
	"chat":      {hearChat, sayChat},
	"gemini":    {hearGemini, sayGemini},
	"responses": {hearResponses, sayResponses},
}

func startModel(t *testing.T, f form, steps []move) *scriptedModel {
	m := &scriptedModel{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h, ok := heard{}, false
		if r.Method == http.MethodPost {
			h, ok = f.hear(r, body)
		}
		m.log(r, body, h)
		switch {
		case !ok:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data":[],"models":[],"object":"list","input_tokens":1,"totalTokens":1}`)
		case len(h.tools) == 0 && h.ownSearch == "" && !h.code: // a title for the conversation, and the like
			f.say(w, r, body, 0, move{last: true})
		default:
			n, next := m.next(h, steps)
			f.say(w, r, body, n, next)
		}
	}))
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

func (m *scriptedModel) log(r *http.Request, body []byte, h heard) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := string(body)
	if len(text) > 600 {
		text = text[:300] + " ... " + text[len(text)-300:]
	}
	m.requests = append(m.requests, fmt.Sprintf("%s %s: %d tools, own search %q, %d results: %s", r.Method, r.URL.Path, len(h.tools), h.ownSearch, len(h.results), text))
}

// next is the move that follows on what the client knows. A request that is sent again gets the same move again.
func (m *scriptedModel) next(h heard, steps []move) (n int, next move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(h.results) > len(m.results) {
		m.results = h.results
	}
	if n = len(h.results); n < len(m.moves) {
		return n, m.moves[n]
	}
	next = m.decide(h, steps)
	m.moves = append(m.moves, next)
	m.done = m.done || next.last
	return n, next
}

// decide follows the words of tool_search, unless the tool is there already. steps begin with the call of the tool
// that is looked for.
func (m *scriptedModel) decide(h heard, steps []move) move {
	want, n := steps[0], len(m.moves)
	query := cmp.Or(want.query, "change the working directory")
	searches := 0
	for searches < n && (m.moves[searches].ownSearch || strings.HasSuffix(m.moves[searches].name, "tool_search")) {
		searches++
	}
	searched := searches > 0
	n -= searches
	switch {
	case n == 0 && searched && searches < 9 && want.query != "" && !strings.Contains(m.results[searches-1], want.name):
		return m.moves[0] // a client that searches by itself is told of new tools while they start
	case h.code && len(m.moves) == 0:
		return move{code: true, ownSearch: true, args: fmt.Sprintf(`text(ALL_TOOLS.filter(t => /%s/i.test(t.description)).map(t => t.name))`, cmp.Or(want.query, "working directory"))}
	case h.code && n < len(steps):
		return move{code: true, name: steps[n].name,
			args: fmt.Sprintf("const r = await tools.mcp__codehand__%s(%s); text(r.content.map(c => c.text).join(''))", steps[n].name, steps[n].args)}
	case n == 0 && !searched && !listed(h, want.name) && h.ownSearch != "":
		return move{name: h.ownSearch, args: asJSON(map[string]any{"query": cmp.Or(want.query, "change working directory session options"), "limit": 8, "max_results": 5}), ownSearch: true}
	case n == 0 && !searched && !listed(h, want.name):
		return named(h, move{name: "tool_search", args: asJSON(map[string]string{"query": query})})
	case n == 0 && searched && !m.moves[0].ownSearch && strings.Contains(m.results[0], "through call_tool; by name only"):
		return named(h, move{name: "call_tool", args: fmt.Sprintf(`{"name":%q,"arguments":%s}`, want.name, want.args)})
	case n > 0 && n == len(steps)-1 && !listed(h, steps[n].name) && listed(h, "call_tool"):
		return named(h, move{name: "call_tool", args: fmt.Sprintf(`{"name":%q,"arguments":%s}`, steps[n].name, steps[n].args)})
	case n < len(steps):
		return named(h, steps[n])
	}
	return move{last: true}
}

// listed says whether a tool is among those that the model is shown.
func listed(h heard, name string) bool {
	_, ok := shownAs(h, name)
	return ok
}

// shownAs is how the client calls one of our tools.
func shownAs(h heard, name string) (offered, bool) {
	bare, found := offered{}, false
	for _, o := range h.tools {
		switch before, ok := strings.CutSuffix(o.name, name); {
		case ok && strings.Contains(o.namespace+before, "codehand"):
			return o, true
		case ok && before == "":
			bare, found = o, true // unless the client has one of this name, too
		}
	}
	return bare, found
}

// named gives a move the name under which the client knows the tool. Of one that it does not show the name is made as
// those of its neighbours are, as models do.
func named(h heard, m move) move {
	if o, ok := shownAs(h, m.name); ok {
		m.namespace, m.name = o.namespace, o.name
		return m
	}
	for _, known := range []string{"tool_search", "read_file"} {
		if o, ok := shownAs(h, known); ok {
			m.namespace, m.name = o.namespace, strings.TrimSuffix(o.name, known)+m.name
			return m
		}
	}
	if h.ownSearch == "ToolSearch" {
		m.name = "mcp__codehand__" + m.name
	} else {
		m.namespace = "mcp__codehand"
	}
	return m
}

// handedText is what the model reads of a result: clients hand on the text, a list of contents, or JSON of the whole.
func handedText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if strings.HasPrefix(strings.TrimSpace(text), "{") || strings.HasPrefix(strings.TrimSpace(text), "[") {
			if inner := handedText(json.RawMessage(text)); inner != "" {
				return inner
			}
		}
		return text
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var all []string
		for _, e := range list {
			all = append(all, handedText(e))
		}
		return strings.Join(all, "\n")
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	for _, key := range []string{"text", "content", "output", "tools", "error", "result", "name", "tool_name"} {
		if v, ok := o[key]; ok {
			if text := handedText(v); text != "" {
				return text
			}
		}
	}
	return ""
}

// events sends server-sent events.
func events(w http.ResponseWriter, all ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		b, _ := json.Marshal(e)
		var typed struct{ Type string }
		_ = json.Unmarshal(b, &typed)
		if typed.Type != "" {
			fmt.Fprintf(w, "event: %s\n", typed.Type)
		}
		fmt.Fprintf(w, "data: %s\n\n", b)
	}
}

const lastWords = "All steps are done."

// The Messages API of Anthropic.

func hearAnthropic(r *http.Request, body []byte) (h heard, ok bool) {
	var q struct {
		Tools []struct {
			Name         string
			DeferLoading bool `json:"defer_loading"` // the model does not see it
		}
		Messages []struct{ Content json.RawMessage }
	}
	if !strings.HasSuffix(r.URL.Path, "/messages") || json.Unmarshal(body, &q) != nil {
		return h, false
	}
	for _, x := range q.Tools {
		if !x.DeferLoading {
			h.tools = append(h.tools, offered{name: x.Name})
		}
		if x.Name == "ToolSearch" {
			h.ownSearch = x.Name
		}
	}
	for _, m := range q.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(m.Content, &parts) // a text has none
		for _, p := range parts {
			if p.Type == "tool_result" {
				h.results = append(h.results, handedText(p.Content))
			}
		}
	}
	return h, true
}

func sayAnthropic(w http.ResponseWriter, _ *http.Request, body []byte, n int, m move) {
	block, delta, stop := any(map[string]any{"type": "text", "text": ""}), any(map[string]any{"type": "text_delta", "text": lastWords}), "end_turn"
	whole := any(map[string]any{"type": "text", "text": lastWords})
	if !m.last {
		id := fmt.Sprint("toolu_", n)
		block = map[string]any{"type": "tool_use", "id": id, "name": m.name, "input": map[string]any{}}
		delta, stop = map[string]any{"type": "input_json_delta", "partial_json": m.args}, "tool_use"
		whole = map[string]any{"type": "tool_use", "id": id, "name": m.name, "input": json.RawMessage(m.args)}
	}
	var q struct {
		Stream bool
		Model  string
	}
	_ = json.Unmarshal(body, &q)
	message := map[string]any{"id": fmt.Sprint("msg_", n), "type": "message", "role": "assistant", "model": q.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1}}
	if !q.Stream {
		message["content"], message["stop_reason"] = []any{whole}, stop
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	events(w, map[string]any{"type": "message_start", "message": message},
		map[string]any{"type": "content_block_start", "index": 0, "content_block": block},
		map[string]any{"type": "content_block_delta", "index": 0, "delta": delta},
		map[string]any{"type": "content_block_stop", "index": 0},
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}},
		map[string]any{"type": "message_stop"})
}

// The Responses API of OpenAI, as Codex speaks it.

func hearResponses(r *http.Request, body []byte) (h heard, ok bool) {
	var q struct {
		Tools []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
		Input []struct {
			Type          string
			Output, Tools json.RawMessage
		}
	}
	const codeTool = `"type":"custom","name":"exec"`
	if !strings.HasSuffix(r.URL.Path, "/responses") || json.Unmarshal(body, &q) != nil {
		return h, false
	}
	for _, x := range q.Tools {
		switch x.Type {
		case "tool_search":
			h.ownSearch = "tool_search"
		case "namespace":
			for _, in := range x.Tools {
				h.tools = append(h.tools, offered{x.Name, in.Name})
			}
		default:
			h.tools = append(h.tools, offered{name: x.Name})
		}
	}
	for _, i := range q.Input {
		switch i.Type {
		case "additional_tools":
			h.code = h.code || strings.Contains(string(i.Tools), codeTool)
		case "function_call_output", "custom_tool_call_output":
			h.results = append(h.results, handedText(i.Output))
		case "tool_search_output":
			h.results = append(h.results, string(i.Tools))
		}
	}
	return h, true
}

func sayResponses(w http.ResponseWriter, _ *http.Request, _ []byte, n int, m move) {
	id := fmt.Sprint("call_", n)
	item := map[string]any{"type": "function_call", "id": "fc_" + id, "call_id": id, "name": m.name, "arguments": m.args}
	switch {
	case m.last:
		item = map[string]any{"type": "message", "id": "msg_" + id, "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": lastWords, "annotations": []any{}}}}
	case m.code:
		item = map[string]any{"type": "custom_tool_call", "id": "ct_" + id, "call_id": id, "namespace": "functions", "name": "exec", "status": "completed", "input": m.args}
	case m.ownSearch:
		item = map[string]any{"type": "tool_search_call", "id": "ts_" + id, "call_id": id, "execution": "client", "status": "completed", "arguments": json.RawMessage(m.args)}
	case m.namespace != "":
		item["namespace"] = m.namespace
	}
	usage := map[string]any{"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2}
	events(w, map[string]any{"type": "response.created", "response": map[string]any{"id": fmt.Sprint("resp_", n)}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
		map[string]any{"type": "response.completed", "response": map[string]any{"id": fmt.Sprint("resp_", n), "output": []any{item}, "usage": usage}})
}

// The Chat Completions API of OpenAI, which many speak.

func hearChat(r *http.Request, body []byte) (h heard, ok bool) {
	var q struct {
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") || json.Unmarshal(body, &q) != nil {
		return h, false
	}
	for _, x := range q.Tools {
		h.tools = append(h.tools, offered{name: x.Function.Name})
	}
	for _, m := range q.Messages {
		if m.Role == "tool" {
			h.results = append(h.results, handedText(m.Content))
		}
	}
	return h, true
}

func sayChat(w http.ResponseWriter, _ *http.Request, body []byte, n int, m move) {
	said, reason := map[string]any{"role": "assistant", "content": lastWords}, "stop"
	if !m.last {
		call := map[string]any{"index": 0, "id": fmt.Sprint("call_", n), "type": "function", "function": map[string]any{"name": m.name, "arguments": m.args}}
		said, reason = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	var q struct {
		Stream bool
		Model  string
	}
	_ = json.Unmarshal(body, &q)
	answer := func(key string, value, reason any) map[string]any {
		return map[string]any{"id": fmt.Sprint("chat_", n), "object": "chat.completion", "created": 1, "model": q.Model,
			"choices": []any{map[string]any{"index": 0, key: value, "finish_reason": reason}}, "usage": map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
	}
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer("message", said, reason))
		return
	}
	first, last := answer("delta", said, nil), answer("delta", map[string]any{}, reason)
	first["object"], last["object"] = "chat.completion.chunk", "chat.completion.chunk"
	delete(first, "usage")
	events(w, first, last)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// The API of Gemini.

var generates = regexp.MustCompile(`:(streamG|g)enerateContent$`)

func hearGemini(r *http.Request, body []byte) (h heard, ok bool) {
	var q struct {
		Tools    []struct{ FunctionDeclarations []struct{ Name string } }
		Contents []struct {
			Parts []struct {
				FunctionResponse *struct{ Response json.RawMessage }
			}
		}
	}
	if !generates.MatchString(r.URL.Path) || json.Unmarshal(body, &q) != nil {
		return h, false
	}
	for _, x := range q.Tools {
		for _, f := range x.FunctionDeclarations {
			h.tools = append(h.tools, offered{name: f.Name})
		}
	}
	for _, c := range q.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				h.results = append(h.results, handedText(p.FunctionResponse.Response))
			}
		}
	}
	return h, true
}

func sayGemini(w http.ResponseWriter, r *http.Request, _ []byte, _ int, m move) {
	part := map[string]any{"text": lastWords}
	if !m.last {
		part = map[string]any{"functionCall": map[string]any{"name": m.name, "args": json.RawMessage(m.args)}}
	}
	answer := map[string]any{"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": []any{part}}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
	if strings.HasSuffix(r.URL.Path, ":generateContent") {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	events(w, answer)
}
