package calls

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/server/asking"
	"codehand/server/pipeline"
	"codehand/server/subagents"
	"codehand/tools/agent"
	"codehand/tools/tool"
)

// hands is Arrival.Hands.
func (t *toolCall) hands() agent.Hands {
	return subagents.Hands{Host: &t.h.Agents, Call: &t.Turn, Waits: t.waits, Leave: t.places.LeaveQueues}
}

// asChild makes the state that of a sub-agent, if it makes the call.
func (t *toolCall) asChild(ctx context.Context) {
	of := t.Req.Child
	if of == nil {
		return
	}
	mode := of.Mode(ctx)
	t.State.Start, t.State.Highest, t.State.Above, t.State.Depth = mode, mode, of.Mode, of.Depth
	t.State.Over = of.Limits
	t.State.Client.Forms, t.State.Searches = of.Forms, of.Searches
	t.State.Samples, t.State.PageModel = false, false
	t.State.KeepApart(of.Apart)
}

// agent is the sub-agent that makes the call; zero: a client does.
func (t *toolCall) agent() pipeline.Agent {
	if t.Req.Child == nil {
		return pipeline.Agent{}
	}
	return pipeline.Agent{ID: t.Req.Child.ID, Type: t.Req.Child.Type}
}

// sample is Arrival.Sample: the model of the client of this call answers one question, without tools; nil: it may not
// be asked.
func (t *toolCall) sample() func(ctx context.Context, system, prompt string, maxTokens int) (string, error) {
	if !t.State.PageModel {
		return nil
	}
	return func(ctx context.Context, system, prompt string, maxTokens int) (string, error) {
		t.places.LeaveQueues() // a person may think about it
		return subagents.Sample(ctx, t.Req.Peer, system, prompt, maxTokens)
	}
}

// elicit is Arrival.Elicit: a question of another program goes to the person of the client; nil: it has none that can
// be asked now.
func (t *toolCall) elicit() func(ctx context.Context, message string, schema json.RawMessage) (tool.Elicited, error) {
	if !t.State.Client.CanAsk || t.Req.Child != nil || t.State.Client.Modern && t.waits == nil {
		return nil
	}
	return func(ctx context.Context, message string, schema json.RawMessage) (tool.Elicited, error) {
		t.places.LeaveQueues()
		ctx, cancel := context.WithTimeout(ctx, t.h.Asks.Life)
		defer cancel()
		answer, err := t.Req.Peer.Call(ctx, string(mcp.MethodElicitationCreate),
			mcp.ElicitationParams{Message: message, RequestedSchema: schema})
		if err != nil {
			return tool.Elicited{}, err
		}
		said := asking.Parse(answer)
		if said == nil {
			return tool.Elicited{}, errors.New("there was no answer that can be read")
		}
		content, err := json.Marshal(said.Content)
		return tool.Elicited{Action: string(said.Action), Content: content}, err
	}
}
