package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"codehand/tools/agent/loop"
)

// chat is the format OpenAI Chat Completions. Its servers differ; what one does not take is left out after its refusal.
type chat struct {
	newLimit atomic.Bool // send max_completion_tokens and not max_tokens
	turned   atomic.Bool // newLimit was changed after a refusal
	noUsage  atomic.Bool // do not send stream_options
	noEffort atomic.Bool // do not send reasoning_effort
}

type chatRequest struct {
	Model      string   `json:"model"`
	Stream     bool     `json:"stream"`
	Options    object   `json:"stream_options,omitempty"`
	MaxTokens  int      `json:"max_tokens,omitempty"`
	Completion int      `json:"max_completion_tokens,omitempty"`
	Effort     string   `json:"reasoning_effort,omitempty"`
	Tools      []object `json:"tools,omitempty"`
	Messages   []object `json:"messages"`
}

// chatOpaque is what servers want back beside calls: thoughts as text, and what stood at calls, by their ids.
type chatOpaque struct {
	Reasoning string                     `json:"reasoning_content"`
	Extra     map[string]json.RawMessage `json:"extra_content"`
}

func (c *chat) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

func (c *chat) Adapt(text string) bool {
	switch {
	case strings.Contains(text, "stream_options") && c.noUsage.CompareAndSwap(false, true),
		strings.Contains(text, "reasoning_effort") && c.noEffort.CompareAndSwap(false, true):
		return true
	case strings.Contains(text, "max_") && strings.Contains(text, "_tokens") && c.turned.CompareAndSwap(false, true):
		c.newLimit.Store(!c.newLimit.Load())
		return true
	}
	return false
}

func (c *chat) Body(model string, t loop.Turn) any {
	r := chatRequest{Model: model, Stream: true, Messages: []object{}}
	if c.newLimit.Load() {
		r.Completion = t.MaxOutput
	} else {
		r.MaxTokens = t.MaxOutput
	}
	if !c.noUsage.Load() {
		r.Options = object{"include_usage": true}
	}
	if !c.noEffort.Load() {
		r.Effort = t.Effort
	}
	for _, tool := range t.Tools {
		function := object{"name": tool.Name, "description": tool.Description, "parameters": schema(tool)}
		r.Tools = append(r.Tools, object{"type": "function", "function": function})
	}
	if t.System != "" {
		r.Messages = append(r.Messages, object{"role": "system", "content": t.System})
	}
	for _, message := range t.Messages {
		if message.Role == loop.RoleAssistant {
			r.Messages = append(r.Messages, assistant(message))
		} else {
			r.Messages = append(r.Messages, user(message)...)
		}
	}
	return r
}

// user is a message of the user: results are messages of their own, and come first.
func user(m loop.Message) (list []object) {
	var texts []string
	for _, p := range m.Parts {
		if r := p.Result; r != nil {
			list = append(list, object{"role": "tool", "tool_call_id": r.CallID, "content": resultText(r)})
		} else if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) > 0 {
		list = append(list, object{"role": loop.RoleUser, "content": strings.Join(texts, "\n\n")})
	}
	return list
}

// assistant is a message of the model as it is sent back.
func assistant(m loop.Message) object {
	var back chatOpaque
	var calls []object
	text := ""
	for _, p := range m.Parts {
		switch {
		case p.Opaque != nil:
			_ = json.Unmarshal(p.Opaque, &back) // of another format: there is nothing to send
		case p.Call != nil:
			function := object{"name": p.Call.Name, "arguments": string(p.Call.Arguments)}
			calls = append(calls, object{"type": "function", "id": p.Call.ID, "function": function})
		default:
			text += p.Text
		}
	}
	// The content stands also if it is empty: some servers want one beside calls.
	out := object{"role": loop.RoleAssistant, "content": text}
	if len(calls) == 0 {
		return out
	}
	out["tool_calls"] = calls
	if back.Reasoning != "" { // servers that want thoughts back want them beside calls, others refuse them elsewhere
		out["reasoning_content"] = back.Reasoning
	}
	for _, c := range calls {
		if extra := back.Extra[c["id"].(string)]; extra != nil {
			c["extra_content"] = extra
		}
	}
	return out
}

// resultText is a result as text: the format has no other results, and no mark for errors.
func resultText(r *loop.Result) string {
	text := shown(r.Text)
	if r.IsError {
		text = "Error: " + text
	}
	for _, i := range r.Images {
		text += fmt.Sprintf("\n[an image (%s, %d bytes) that cannot be shown to this model]", i.MIME, len(i.Data))
	}
	return text
}

// chatAnswer is an answer while it arrives.
type chatAnswer struct {
	say             func(string)
	made            loop.Calls
	text, reasoning strings.Builder
	refusal         strings.Builder
	calls           []*chatPiece
	tokens          loop.Tokens
	finish          string
}

// chatPiece is a call while it arrives.
type chatPiece struct {
	index    int // -1: the server sends none
	id, name string
	text     strings.Builder
	extra    json.RawMessage
}

func (c *chat) Assemble(t loop.Turn, say func(string)) Assembler {
	return &chatAnswer{say: say, made: loop.CallsOf(t)}
}

type chatEvent struct {
	Choices []struct {
		Delta   chatDelta `json:"delta"`
		Message chatDelta `json:"message"` // of servers that do not stream
		Finish  string    `json:"finish_reason"`
	} `json:"choices"`
	Usage *chatUsage `json:"usage"`
	Error *complaint `json:"error"`
}

type chatDelta struct {
	Content   json.RawMessage `json:"content"` // a text, null, or a list of parts
	Refusal   string          `json:"refusal"`
	Reasoning string          `json:"reasoning_content"`
	Calls     []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"` // a text; some servers send an object
		} `json:"function"`
		Extra json.RawMessage `json:"extra_content"`
	} `json:"tool_calls"`
}

type chatUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Hit int `json:"prompt_cache_hit_tokens"` // of DeepSeek
}

func (a *chatAnswer) Event(data []byte) (bool, error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	var e chatEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, ended("an event is no JSON of the format")
	}
	if e.Error != nil {
		return false, e.Error.fault(e.Error.status())
	}
	if u := e.Usage; u != nil { // a sum so far: some servers send one with each event
		read := max(0, u.Details.Cached, u.Hit)
		a.tokens = loop.Tokens{
			Input: max(0, u.Prompt-read-u.Details.Written), Output: max(0, u.Completion),
			CacheRead: read, CacheWrite: max(0, u.Details.Written),
		}
	}
	for _, choice := range e.Choices[:min(1, len(e.Choices))] {
		a.add(choice.Delta)
		a.add(choice.Message)
		if len(a.calls) > maxPieces {
			return false, ended("it has too many calls")
		}
		if choice.Finish != "" {
			a.finish = choice.Finish
		}
	}
	return false, nil
}

func (a *chatAnswer) add(d chatDelta) {
	if text := plain(d.Content); text != "" {
		a.text.WriteString(text)
		a.say(text)
	}
	a.refusal.WriteString(d.Refusal)
	a.reasoning.WriteString(d.Reasoning)
	for _, c := range d.Calls {
		p := a.piece(c.Index, c.ID, c.Function.Name)
		if p.id == "" {
			p.id = c.ID
		}
		if p.name == "" {
			p.name = c.Function.Name
		}
		if c.Extra != nil {
			p.extra = c.Extra
		}
		p.text.WriteString(plain(c.Function.Arguments))
	}
}

// piece finds the call that a delta goes on with, or begins one. Servers leave the index out, or send 0 for every call;
// then a name with a new id begins a call. Others send a new id with each piece of one call; those have no name.
func (a *chatAnswer) piece(index *int, id, name string) *chatPiece {
	at := -1
	if index != nil {
		at = *index
	}
	for _, p := range a.calls {
		if id != "" && p.id == id && (at < 0 || p.index == at) {
			return p
		}
	}
	for i := len(a.calls) - 1; i >= 0; i-- {
		switch p := a.calls[i]; {
		case at >= 0 && p.index != at:
		case name != "" && (at < 0 || id != "" && p.id != ""): // another call
		default:
			return p
		}
	}
	p := &chatPiece{index: at}
	a.calls = append(a.calls, p)
	return p
}

// plain is a text: of a JSON string, of a list of parts, or the JSON itself.
func plain(data json.RawMessage) string {
	var text string
	if len(data) == 0 || json.Unmarshal(data, &text) == nil { // null is no error, and empty
		return text
	}
	var parts []struct{ Type, Text string }
	if json.Unmarshal(data, &parts) != nil {
		return string(data)
	}
	for _, p := range parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return text
}

func (a *chatAnswer) Answer() (loop.Answer, error) {
	switch a.finish {
	case "":
		return loop.Answer{}, ended("it has no finish_reason")
	case "error", "insufficient_system_resource":
		return loop.Answer{}, ended("the server says " + a.finish)
	}
	answer := loop.Answer{Stop: cmp.Or(stops[a.finish], loop.StopEnd), Tokens: a.tokens}
	if a.text.Len() > 0 {
		answer.Parts = append(answer.Parts, loop.Part{Text: a.text.String()})
	} else if a.refusal.Len() > 0 {
		answer.Parts, answer.Stop = []loop.Part{{Text: a.refusal.String()}}, loop.StopRefuse
	}
	extra := object{}
	for _, p := range a.calls {
		call := a.made.Make(p.id, p.name, p.text.String())
		answer.Parts = append(answer.Parts, loop.Part{Call: call})
		if p.extra != nil {
			extra[call.ID] = p.extra
		}
	}
	if len(answer.Parts) == 0 && a.reasoning.Len() == 0 && a.tokens.Output == 0 && answer.Stop == loop.StopEnd {
		// LM Studio answers so if the prompt is larger than the context that the model was loaded with.
		return loop.Answer{}, &Fault{Kind: loop.Broken, Text: "the model answered with nothing; " +
			"if its server is your own, load the model with a larger context"}
	}
	if len(a.calls) > 0 && a.reasoning.Len()+len(extra) > 0 {
		back := object{"reasoning_content": a.reasoning.String(), "extra_content": extra}
		answer.Parts = append(answer.Parts, opaque(back))
	}
	return answer, nil
}
