package wire

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"

	"codehand/tools/agent/loop"
)

// messages is the format Anthropic Messages.
type messages struct {
	noEffort atomic.Bool // the model takes no effort
}

type messagesRequest struct {
	Model     string   `json:"model"`
	MaxTokens int      `json:"max_tokens"`
	Stream    bool     `json:"stream"`
	Output    object   `json:"output_config,omitempty"`
	Tools     []object `json:"tools,omitempty"`
	System    []object `json:"system,omitempty"`
	Messages  []object `json:"messages"`
}

// An object is a piece of a request.
type object map[string]any

// cached marks what stands before it as worth keeping at the provider's.
var cached = object{"type": "ephemeral"}

func (m *messages) Authorize(h http.Header, key string) {
	h.Set("Anthropic-Version", "2023-06-01")
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

func (m *messages) Adapt(text string) bool {
	return strings.Contains(text, "effort") && m.noEffort.CompareAndSwap(false, true)
}

// Body puts what changes least first and marks four places to cache up to, as many as there may be: the tools, the
// system prompt, and the last two messages of the user, of which the one before was the last when it was sent.
func (m *messages) Body(model string, t loop.Turn) any {
	r := messagesRequest{Model: model, MaxTokens: t.MaxOutput, Stream: true, Messages: []object{}}
	if t.Effort != "" && !m.noEffort.Load() {
		r.Output = object{"effort": t.Effort}
	}
	for _, tool := range t.Tools {
		entry := object{"name": tool.Name, "description": tool.Description, "input_schema": schema(tool)}
		r.Tools = append(r.Tools, entry)
	}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1]["cache_control"] = cached
	}
	if t.System != "" {
		r.System = []object{{"type": "text", "text": t.System, "cache_control": cached}}
	}
	var last []object // blocks at the end of messages of the user
	for _, message := range t.Messages {
		var content []any
		for _, p := range message.Parts {
			if b := toBlock(p); b != nil {
				content = append(content, b)
			}
		}
		if len(content) == 0 {
			continue
		}
		r.Messages = append(r.Messages, object{"role": message.Role, "content": content})
		if b, ok := content[len(content)-1].(object); ok && message.Role == loop.RoleUser {
			last = append(last, b)
		}
	}
	for _, b := range last[max(0, len(last)-2):] {
		b["cache_control"] = cached
	}
	return r
}

// toBlock returns a part as an object or as it came; nil: there is nothing to send. The provider refuses blank texts.
func toBlock(p loop.Part) any {
	switch {
	case p.Opaque != nil:
		var of block
		if err := json.Unmarshal(p.Opaque, &of); err != nil || !strings.HasSuffix(of.Type, "thinking") {
			return nil // of another format
		}
		return p.Opaque
	case p.Call != nil:
		return object{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Name, "input": p.Call.Arguments}
	case p.Result != nil:
		var content []object
		if strings.TrimSpace(p.Result.Text) != "" || len(p.Result.Images) == 0 {
			content = append(content, object{"type": "text", "text": shown(p.Result.Text)})
		}
		for _, i := range p.Result.Images { // bytes are base64 in JSON
			source := object{"type": "base64", "media_type": i.MIME, "data": i.Data}
			content = append(content, object{"type": "image", "source": source})
		}
		b := object{"type": "tool_result", "tool_use_id": p.Result.CallID, "content": content}
		if p.Result.IsError {
			b["is_error"] = true
		}
		return b
	case strings.TrimSpace(p.Text) != "":
		return object{"type": "text", "text": p.Text}
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
	calls  loop.Calls
	blocks []*growing
	tokens loop.Tokens
	stop   string
	whole  bool
}

// growing is a block while it arrives.
type growing struct {
	start                   block
	index                   int
	text, thinking, partial strings.Builder
}

func (m *messages) Assemble(t loop.Turn, say func(string)) Assembler {
	return &messagesAnswer{say: say, calls: loop.CallsOf(t)}
}

type messagesEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage messagesUsage `json:"usage"`
	} `json:"message"`
	Block block `json:"content_block"`
	Delta block `json:"delta"`
	// of a whole message, which servers that do not stream send instead of events
	Content []block       `json:"content"`
	Stop    string        `json:"stop_reason"`
	Usage   messagesUsage `json:"usage"`
	Error   *complaint    `json:"error"`
}

// A block is the start of a piece of an answer, or an addition to one.
type block struct {
	Type, ID, Name, Text, Thinking, Signature, Data string
	Input                                           json.RawMessage
	PartialJSON                                     string `json:"partial_json"`
	StopReason                                      string `json:"stop_reason"`
}

type messagesUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (a *messagesAnswer) Event(data []byte) (bool, error) {
	var e messagesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return false, ended("an event is no JSON")
	}
	switch e.Type {
	case "message_start":
		a.count(e.Message.Usage)
	case "content_block_start":
		g := &growing{start: e.Block, index: e.Index}
		if a.blocks = append(a.blocks, g); len(a.blocks) > maxPieces {
			return false, ended("it has too many pieces")
		}
		a.grow(g, e.Block)
	case "content_block_delta":
		for i := len(a.blocks) - 1; i >= 0; i-- {
			if g := a.blocks[i]; g.index == e.Index {
				g.start.Signature += e.Delta.Signature
				a.grow(g, e.Delta)
				return false, nil
			}
		}
		return false, ended("a piece belongs to no block")
	case "message_delta":
		a.count(e.Usage)
		a.stop = e.Delta.StopReason
	case "message":
		a.count(e.Usage)
		if a.stop, a.whole = e.Stop, true; len(e.Content) > maxPieces {
			return false, ended("it has too many pieces")
		}
		for i, b := range e.Content {
			g := &growing{start: b, index: i}
			a.blocks = append(a.blocks, g)
			a.grow(g, b)
		}
		return true, nil
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

func (a *messagesAnswer) grow(g *growing, b block) {
	g.text.WriteString(b.Text)
	g.thinking.WriteString(b.Thinking)
	g.partial.WriteString(b.PartialJSON)
	if b.Text != "" {
		a.say(b.Text)
	}
}

// count takes what an event says. The counts are sums so far, and some events leave some out.
func (a *messagesAnswer) count(u messagesUsage) {
	a.tokens.Input = max(a.tokens.Input, u.Input)
	a.tokens.Output = max(a.tokens.Output, u.Output)
	a.tokens.CacheRead = max(a.tokens.CacheRead, u.CacheRead)
	a.tokens.CacheWrite = max(a.tokens.CacheWrite, u.CacheWrite)
}

func (a *messagesAnswer) Answer() (loop.Answer, error) {
	if !a.whole {
		return loop.Answer{}, ended("it has no message_stop")
	}
	answer := loop.Answer{Stop: cmp.Or(stops[a.stop], loop.StopEnd), Tokens: a.tokens}
	for _, g := range a.blocks {
		switch {
		case g.start.Type == "tool_use": // some servers send all at the start
			call := a.calls.Make(g.start.ID, g.start.Name, cmp.Or(g.partial.String(), string(g.start.Input)))
			answer.Parts = append(answer.Parts, loop.Part{Call: call})
		case g.start.Type == "thinking":
			thought := object{"type": "thinking", "thinking": g.thinking.String(), "signature": g.start.Signature}
			answer.Parts = append(answer.Parts, opaque(thought))
		case g.start.Type == "redacted_thinking":
			answer.Parts = append(answer.Parts, opaque(object{"type": "redacted_thinking", "data": g.start.Data}))
		case g.text.Len() > 0:
			answer.Parts = append(answer.Parts, loop.Part{Text: g.text.String()})
		}
	}
	return answer, nil
}

// stops are what ends an answer, in both formats. What is not here is StopEnd.
var stops = map[string]string{
	"max_tokens": loop.StopLength, "model_context_window_exceeded": loop.StopFull, "refusal": loop.StopRefuse,
	"pause_turn": loop.StopPause,
	"length":     loop.StopLength, "content_filter": loop.StopRefuse,
}

// maxPieces is how many blocks or calls an answer may have.
const maxPieces = 256

// opaque is a part that goes back to the provider. Of objects JSON can always be made.
func opaque(back object) loop.Part {
	data, _ := json.Marshal(back)
	return loop.Part{Opaque: data}
}
