package server

import (
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"codehand/server/jsonrpc"
	"codehand/server/pipeline"
	"codehand/server/state"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// askID names the one question of an answer that asks.
	askID = "answer"
	// maxAsks is how many questions one legacy request puts: for permission, the tool's own, and one of them again.
	maxAsks = 3
	// askLife is how long a question waits for its answer at most: the life of its family in the Store.
	askLife = 10 * time.Minute
)

// An asker keeps the questions that wait for a person. It is safe for concurrent use.
type asker struct {
	store state.Store
	life  time.Duration // of a question, at most askLife
	now   func() time.Time
}

func newAsker(store state.Store, timeout time.Duration) *asker {
	if timeout <= 0 {
		timeout = askLife
	}
	return &asker{store: store, life: min(timeout, askLife), now: time.Now}
}

// ask is Pipeline.Ask. It never waits: the question is kept and becomes the answer to the request, and mcp-go brings the
// person's answer with a later request, or puts the question to a legacy client and runs the handler again.
func (s *Server) ask(ctx context.Context, st *session.State, a pipeline.Asking) (tool.Answer, error) {
	rec := recordFrom(ctx)
	if rec == nil || !st.Client.CanAsk {
		return tool.Answer{}, nil
	}
	if !st.Client.Modern && (rec.asked == maxAsks || rec.unheard) {
		return tool.Answer{Outcome: tool.Declined, Silent: true}, nil
	}
	rec.asked++
	nonce, token, err := s.asks.keep(ctx, st.Key, a, st.Client.Revision)
	if err != nil {
		return tool.Answer{}, &tool.Refusal{
			Code: tool.StateUnavailable, Cause: err,
			Text: "The state store does not answer, so nobody can be asked. Nothing was done. Try again.",
		}
	}
	rec.question = mcpserver.NewInputRequestBuilder(token).Elicit(askID, askForm(a.Question, st.Client.Revision)).ToolResult()
	s.event("ask", map[string]any{"p": st.Key.Principal, "sk": st.Key.Session, "call": a.Call, "tool": a.Tool, "ask": nonce})
	return tool.Answer{}, tool.ErrPending
}

// badState is the answer to a requestState that is not one of ours for this request.
var badState = jsonrpc.Error{Code: mcp.INVALID_PARAMS, Message: "requestState is not valid for this request"}

// reply is what the request brings as the answer to an earlier question; nil: nothing that counts. A state that was not
// made for this principal, session and tool is an error. What comes without a state, for a question that is over, or a
// second time is no answer, and the person is asked anew.
func (s *Server) reply(ctx context.Context, rec *record, t tool.Tool) (*pipeline.Reply, *jsonrpc.Error) {
	token := rec.input.RequestState
	if token == "" {
		return nil, nil
	}
	key, name := rec.state.Key, t.Spec.Name
	event := map[string]any{"p": key.Principal, "sk": key.Session, "tool": name}
	nonce, err := s.asks.open(ctx, key, name, token)
	if errors.Is(err, errForged) {
		event["outcome"] = "forged"
		s.event("answer", event)
		refused := badState
		return nil, &refused
	}
	var kept *keptAsk
	if err == nil {
		event["ask"] = nonce
		kept, err = s.asks.take(ctx, nonce)
	}
	switch {
	case err != nil: // whoever asks again will say that the Store does not answer
		s.log.WarnContext(ctx, "an answer cannot be looked up", "tool", name, "err", err)
		return nil, nil
	case kept == nil:
		event["outcome"] = "gone"
		s.event("answer", event)
		return nil, nil
	}
	answer := kept.fit(mcpserver.ElicitationResponse(rec.input.InputResponses, askID))
	answer.Silent = rec.unheard
	event["outcome"] = outcomeName(answer)
	s.event("answer", event)
	return &pipeline.Reply{Digest: kept.Digest, Answer: answer, Before: kept.Before}, nil
}

// lacksAsking is the error that the modern era wants for a call of a tool that asks, by a client that takes no questions;
// nil: it is none. Through a dispatcher the model chose the tool and not the client, so it reads the refusal.
func (r *record) lacksAsking(refusal *tool.Refusal) *jsonrpc.Error {
	c := r.state.Client
	if !c.Modern || c.CanAsk || refusal.Code != tool.ToolDisabled || r.aim.through {
		return nil
	}
	able := *r.state
	able.Client.CanAsk = true
	if t := r.aim.tool; t.Unavailable(r.state) == "" || t.Unavailable(&able) != "" {
		return nil
	}
	return &jsonrpc.Error{
		Code: mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, Message: refusal.Text,
		Data: map[string]any{"requiredCapabilities": map[string]any{"elicitation": map[string]any{}}},
	}
}

func outcomeName(a tool.Answer) string {
	switch {
	case a.Silent:
		return "none"
	case a.Outcome == tool.Accepted:
		return "accept"
	case a.Outcome == tool.Cancelled:
		return "cancel"
	}
	return "decline"
}

// wantsInput says whether the result asks the client for something.
func wantsInput(r *mcp.CallToolResult) bool { return r != nil && r.NeedsInput() }

// again gives a call that comes back with its answer, in the same request, new places in all queues: it gave them up
// when it asked, so that others could go on meanwhile.
func (s *Server) again(rec *record) {
	s.arrival.Lock()
	defer s.arrival.Unlock()
	rec.turns = nil
	rec.queue()
	rec.visit = s.pipe.Arrive(rec.state)
}

// canElicit says whether a client takes forms. An empty object means that it does; addresses to open are never sent.
func canElicit(c *mcp.ElicitationCapability) bool { return c != nil && (c.Form != nil || c.URL == nil) }
