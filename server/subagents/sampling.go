package subagents

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/jsonrpc"
	"codehand/server/request"
	"codehand/server/waiting"
	"codehand/tools/agent/loop"
)

// sampleTime is how long a client has for one answer of its model: some declare sampling and never answer.
const sampleTime = 120 * time.Second

// A sampler is the model of the client of a call, as a loop.Model.
type sampler struct{ peer request.Peer }

// Sampler is agent.Hands.Sampler.
func (h Hands) Sampler() (m loop.Model, turns int) {
	if !h.Call.State.Samples {
		return nil, 0
	}
	if h.Waits != nil {
		turns = max(1, h.Waits.Rounds())
	}
	return sampler{h.Call.Req.Peer}, turns
}

// Sample lets the model of the client at the other end of a call answer one question, without tools.
func Sample(ctx context.Context, peer request.Peer, system, prompt string, maxTokens int) (string, error) {
	a, err := sampler{peer}.Turn(ctx, loop.Turn{
		System: system, MaxOutput: maxTokens,
		Messages: []loop.Message{{Role: loop.RoleUser, Parts: []loop.Part{{Text: prompt}}}},
	}, nil)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range a.Parts {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// A samplePart is one part of a message, as sampling/createMessage writes it.
type samplePart struct {
	Type      string          `json:"type"` // text, image, tool_use, tool_result
	Text      *string         `json:"text,omitempty"`
	Data      string          `json:"data,omitempty"`
	MIME      string          `json:"mimeType,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"toolUseId,omitempty"`
	Content   []samplePart    `json:"content,omitempty"`
	IsError   bool            `json:"isError,omitempty"`
}

type sampleMessage struct {
	Role    string       `json:"role"`
	Content []samplePart `json:"content"`
}

// Turn is loop.Model.Turn.
func (m sampler) Turn(ctx context.Context, t loop.Turn, say func(string)) (loop.Answer, error) {
	params := map[string]any{
		"messages": sampleMessages(t.Messages), "systemPrompt": t.System, "maxTokens": max(1, t.MaxOutput),
		"includeContext": "none",
	}
	if len(t.Tools) > 0 {
		var tools []map[string]any
		for _, x := range t.Tools {
			tools = append(tools, map[string]any{
				"name": x.Name, "description": x.Description, "inputSchema": x.Schema,
			})
		}
		params["tools"] = tools
	}
	late, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	raw, err := m.peer.Call(late, string(mcp.MethodSamplingCreateMessage), params)
	switch {
	case ctx.Err() != nil:
		return loop.Answer{}, context.Cause(ctx)
	case errors.Is(err, waiting.ErrSpent):
		return loop.Answer{}, &loop.Error{Kind: loop.Spent, Text: err.Error()}
	case errors.Is(err, waiting.ErrTooLarge):
		return loop.Answer{}, &loop.Error{Kind: loop.Full, Text: err.Error()}
	case errors.Is(err, jsonrpc.ErrNoCalls):
		return loop.Answer{}, &loop.Error{Kind: loop.Broken, Text: "the client cannot be asked during this call"}
	case raw == nil && late.Err() != nil:
		return loop.Answer{}, &loop.Error{Kind: loop.Broken,
			Text: fmt.Sprintf("the client's model gave no answer within %d s", int(sampleTime.Seconds()))}
	case err != nil || raw == nil:
		return loop.Answer{}, &loop.Error{Kind: loop.Denied, Text: "the client did not let its model answer"}
	}
	a, err := sampleAnswer(raw)
	if err != nil {
		return a, &loop.Error{Kind: loop.Broken, Text: "the client's answer cannot be read: " + err.Error()}
	}
	a.Tokens = estimate(t, a)
	for _, p := range a.Parts {
		if p.Text != "" && say != nil {
			say(p.Text)
		}
	}
	return a, nil
}

// sampleMessages writes a conversation. Results stand in messages of their own, as the protocol wants it.
func sampleMessages(messages []loop.Message) []sampleMessage {
	var out []sampleMessage
	for _, m := range messages {
		var results, rest []samplePart
		for _, p := range m.Parts {
			switch {
			case p.Result != nil:
				results = append(results, sampleResult(p.Result))
			case p.Call != nil:
				rest = append(rest, samplePart{Type: "tool_use", ID: p.Call.ID, Name: p.Call.Name,
					Input: p.Call.Arguments})
			case p.Text != "":
				rest = append(rest, samplePart{Type: "text", Text: &p.Text})
			}
		}
		for _, parts := range [][]samplePart{results, rest} {
			if len(parts) > 0 {
				out = append(out, sampleMessage{m.Role, parts})
			}
		}
	}
	return out
}

func sampleResult(r *loop.Result) samplePart {
	part := samplePart{Type: "tool_result", ToolUseID: r.CallID, IsError: r.IsError,
		Content: []samplePart{{Type: "text", Text: &r.Text}}}
	for _, i := range r.Images {
		part.Content = append(part.Content, samplePart{Type: "image", MIME: i.MIME,
			Data: base64.StdEncoding.EncodeToString(i.Data)})
	}
	return part
}

// sampleAnswer reads what a client says its model said.
func sampleAnswer(raw json.RawMessage) (loop.Answer, error) {
	var result struct {
		Content    json.RawMessage `json:"content"`
		StopReason string          `json:"stopReason"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return loop.Answer{}, errors.New("it is no result of sampling")
	}
	var parts []samplePart
	content := bytes.TrimSpace(result.Content)
	if len(content) > 0 && content[0] == '{' { // one part may stand alone
		content = append(append([]byte{'['}, content...), ']')
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return loop.Answer{}, errors.New("its content has an unknown form")
	}
	a := loop.Answer{Stop: loop.StopEnd}
	if result.StopReason == "maxTokens" {
		a.Stop = loop.StopLength
	}
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != nil:
			a.Parts = append(a.Parts, loop.Part{Text: *p.Text})
		case p.Type == "tool_use" && p.ID != "" && p.Name != "":
			c := loop.Call{ID: p.ID, Name: p.Name, Arguments: p.Input}
			if in := bytes.TrimSpace(p.Input); len(in) == 0 {
				c.Arguments = json.RawMessage("{}")
			} else if in[0] != '{' {
				c.Broken, c.Arguments = "the input is no object", json.RawMessage("{}")
			}
			a.Parts = append(a.Parts, loop.Part{Call: &c})
		}
	}
	return a, nil
}

// estimate guesses what a turn cost: clients do not tell.
func estimate(t loop.Turn, a loop.Answer) loop.Tokens {
	count := func(parts []loop.Part) (n int) {
		for _, p := range parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Name) + len(p.Call.Arguments)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
		return n
	}
	in := len(t.System)
	for _, x := range t.Tools {
		in += len(x.Name) + len(x.Description) + len(x.Schema)
	}
	for _, m := range t.Messages {
		in += count(m.Parts)
	}
	return loop.Tokens{Input: in / 4, Output: count(a.Parts) / 4, Estimated: true}
}
