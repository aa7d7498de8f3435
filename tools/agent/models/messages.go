package models

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"codehand/tools/agent/loop"
)

// messages is the format Anthropic Messages.
type messages struct {
	noEffort atomic.Bool // the model takes no effort
}

type messagesRequest struct {
	Model     string       `json:"model"`
	MaxTokens int          `json:"max_tokens"`
	Stream    bool         `json:"stream"`
	Output    *effort      `json:"output_config,omitempty"`
	Tools     []namedTool  `json:"tools,omitempty"`
	System    []*block     `json:"system,omitempty"`
	Messages  []blocksFrom `json:"messages"`
}

type effort struct {
	Effort string `json:"effort"`
}

type namedTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *kind           `json:"cache_control,omitempty"`
}

type blocksFrom struct {
	Role    string `json:"role"`
	Content []any  `json:"content"` // *block, or a block as it came
}

// A block is a piece of a message, in requests and in events.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []*block        `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Cache     *kind           `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"` // base64 in JSON
}

type kind struct {
	Type string `json:"type"`
}

// cached marks what stands before it as worth keeping at the provider's.
var cached = &kind{"ephemeral"}

func (m *messages) authorize(h http.Header, key string) {
	h.Set("Anthropic-Version", "2023-06-01")
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

func (m *messages) adapt(text string) bool {
	text = strings.ToLower(text)
	return (strings.Contains(text, "effort") || strings.Contains(text, "output_config")) && m.noEffort.CompareAndSwap(false, true)
}

// body puts what changes least first and marks four places to cache up to, as many as there may be: the tools, the
// system prompt, and the last two messages of the user, of which the one before was the last when it was sent.
func (m *messages) body(t loop.Turn, o Options) any {
	r := messagesRequest{Model: o.Model, MaxTokens: limit(t, o), Stream: true, Messages: []blocksFrom{}}
	if t.Effort != "" && !m.noEffort.Load() {
		r.Output = &effort{t.Effort}
	}
	for i, tool := range t.Tools {
		r.Tools = append(r.Tools, namedTool{Name: tool.Name, Description: tool.Description, Schema: schema(tool)})
		if i == len(t.Tools)-1 {
			r.Tools[i].Cache = cached
		}
	}
	if t.System != "" {
		r.System = []*block{{Type: "text", Text: t.System, Cache: cached}}
	}
	for _, message := range t.Messages {
		from := blocksFrom{Role: message.Role}
		for _, p := range message.Parts {
			if b := toBlock(p); b != nil {
				from.Content = append(from.Content, b)
			}
		}
		if len(from.Content) > 0 {
			r.Messages = append(r.Messages, from)
		}
	}
	marks := 2
	for i := len(r.Messages) - 1; i >= 0 && marks > 0; i-- {
		if content := r.Messages[i].Content; r.Messages[i].Role == loop.RoleUser {
			if b, ok := content[len(content)-1].(*block); ok {
				b.Cache = cached
				marks--
			}
		}
	}
	return r
}

// toBlock returns a part as a block; nil: there is nothing to send. The provider refuses texts of blanks.
func toBlock(p loop.Part) any {
	switch {
	case p.Opaque != nil:
		return p.Opaque
	case p.Call != nil:
		return &block{Type: "tool_use", ID: p.Call.ID, Name: p.Call.Name, Input: p.Call.Arguments}
	case p.Result != nil:
		b := &block{Type: "tool_result", ToolUseID: p.Result.CallID, IsError: p.Result.IsError}
		if strings.TrimSpace(p.Result.Text) != "" || len(p.Result.Images) == 0 {
			b.Content = []*block{{Type: "text", Text: shown(p.Result.Text)}}
		}
		for _, i := range p.Result.Images {
			b.Content = append(b.Content, &block{Type: "image", Source: &source{"base64", i.MIME, i.Data}})
		}
		return b
	case strings.TrimSpace(p.Text) != "":
		return &block{Type: "text", Text: p.Text}
	}
	return nil
}

// shown is a result's text, which must not be empty.
func shown(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(no output)"
	}
	return text
}

// limit is how many tokens an answer may have.
func limit(t loop.Turn, o Options) int {
	if t.MaxOutput > 0 {
		return t.MaxOutput
	}
	return o.MaxOutput
}

// schema is what a tool takes; a tool without a schema takes nothing.
func schema(t loop.Tool) json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Schema
}

// messagesAnswer is an answer while it arrives.
type messagesAnswer struct {
	say    func(string)
	first  string // begins the ids that the server leaves out
	blocks []*growing
	tokens loop.Tokens
	stop   string
	whole  bool
}

// growing is a block while it arrives.
type growing struct {
	index                     int
	kind, id, name, signature string
	input, data               json.RawMessage
	text, partial, thinking   strings.Builder
}

func (m *messages) assemble(t loop.Turn, say func(string)) assembler {
	return &messagesAnswer{say: say, first: firstID(t)}
}

// firstID begins ids of the calls of one turn. It is the same if the turn is tried again.
func firstID(t loop.Turn) string { return "call_" + strconv.Itoa(len(t.Messages)) + "_" }

type messagesEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	Block struct {
		block
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      json.RawMessage `json:"data"`
	} `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage messagesUsage `json:"usage"`
	Error *complaint    `json:"error"`
}

type messagesUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (a *messagesAnswer) event(data []byte) (bool, error) {
	var e messagesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, ended("an event is no JSON")
	}
	switch e.Type {
	case "message_start":
		a.count(e.Message.Usage)
	case "content_block_start":
		g := &growing{
			index: e.Index, kind: e.Block.Type, id: e.Block.ID, name: e.Block.Name, signature: e.Block.Signature,
			input: e.Block.Input, data: e.Block.Data,
		}
		a.blocks = append(a.blocks, g)
		a.grow(g, e.Block.Text, e.Block.Thinking, "")
	case "content_block_delta":
		for i := len(a.blocks) - 1; i >= 0; i-- {
			if g := a.blocks[i]; g.index == e.Index {
				g.signature += e.Delta.Signature
				a.grow(g, e.Delta.Text, e.Delta.Thinking, e.Delta.PartialJSON)
				return false, nil
			}
		}
		return false, ended("a piece belongs to no block")
	case "message_delta":
		a.count(e.Usage)
		a.stop = e.Delta.StopReason
	case "message_stop":
		a.whole = true
		return true, nil
	default: // an error, a ping, or something new
		if e.Error != nil {
			return false, e.Error.fault(e.Error.status())
		}
	}
	return false, nil
}

func (a *messagesAnswer) grow(g *growing, text, thinking, partial string) {
	g.text.WriteString(text)
	g.thinking.WriteString(thinking)
	g.partial.WriteString(partial)
	if text != "" {
		a.say(text)
	}
}

// count takes what an event says. The counts are sums so far, and some events leave some out.
func (a *messagesAnswer) count(u messagesUsage) {
	a.tokens.Input = max(a.tokens.Input, u.Input)
	a.tokens.Output = max(a.tokens.Output, u.Output)
	a.tokens.CacheRead = max(a.tokens.CacheRead, u.CacheRead)
	a.tokens.CacheWrite = max(a.tokens.CacheWrite, u.CacheWrite)
}

func (a *messagesAnswer) answer() (loop.Answer, error) {
	if !a.whole {
		return loop.Answer{}, ended("it has no message_stop")
	}
	answer := loop.Answer{Stop: loop.StopEnd, Tokens: a.tokens}
	switch a.stop {
	case "max_tokens":
		answer.Stop = loop.StopLength
	case "model_context_window_exceeded":
		answer.Stop = loop.StopFull
	case "refusal":
		answer.Stop = loop.StopRefuse
	case "pause_turn":
		answer.Stop = loop.StopPause
	}
	ids := &callIDs{first: a.first}
	for _, g := range a.blocks {
		switch {
		case g.kind == "tool_use":
			text := g.partial.String()
			if text == "" { // some servers send all at the start
				text = string(g.input)
			}
			answer.Parts = append(answer.Parts, loop.Part{Call: ids.call(g.id, g.name, text)})
		case g.kind == "thinking", g.kind == "redacted_thinking":
			answer.Parts = append(answer.Parts, loop.Part{Opaque: g.opaque()})
		case g.text.Len() > 0:
			answer.Parts = append(answer.Parts, loop.Part{Text: g.text.String()})
		}
	}
	return answer, nil
}

// opaque is a thought as the provider wants it back.
func (g *growing) opaque() json.RawMessage {
	var back any = struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}{g.kind, g.thinking.String(), g.signature}
	if g.kind == "redacted_thinking" {
		back = struct {
			Type string          `json:"type"`
			Data json.RawMessage `json:"data"`
		}{g.kind, g.data}
	}
	data, err := json.Marshal(back)
	if err != nil { // no type here makes one
		return nil
	}
	return data
}

// callIDs gives each call of an answer an id of its own, because servers leave ids out or repeat them.
type callIDs struct {
	first string
	seen  map[string]bool
}

func (c *callIDs) call(id, name, text string) *loop.Call {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	for n := len(c.seen); id == "" || c.seen[id]; n++ {
		id = c.first + strconv.Itoa(n)
	}
	c.seen[id] = true
	call := &loop.Call{ID: id, Name: name}
	call.Arguments, call.Broken = arguments(text)
	return call
}
