package server

import (
	"context"
	"time"

	"codehand/server/pipeline"
	"codehand/tools/hooks"
)

// Begin is agent.Hands.Begin: it asks the hooks of SubagentStart, and ended tells those of SubagentStop.
func (h agentHands) Begin(ctx context.Context, id, kind string) (added string, ended func(how string), err error) {
	r, st := h.call.s.engines.hooks, *h.call.State
	if !r.Wants(hooks.SubagentStart) && !r.Wants(hooks.SubagentStop) {
		return "", func(string) {}, nil
	}
	e := sessionEvent(hooks.SubagentStart, &st)
	e.Agent, e.AgentType = id, kind
	if mode, _, err := st.InForce(ctx, time.Now()); err == nil {
		e.Mode = mode
	}
	o, err := r.Starting(ctx, e)
	if err == nil {
		added, err = pipeline.Started(o)
	}
	if err != nil {
		return "", nil, err
	}
	return added, func(how string) {
		e.Name, e.Reason = hooks.SubagentStop, how
		r.Tell(e)
	}, nil
}

// agent is the sub-agent that makes the call; zero: a client does.
func (t *toolCall) agent() pipeline.Agent {
	if t.Req.Child == nil {
		return pipeline.Agent{}
	}
	return pipeline.Agent{ID: t.Req.Child.ID, Type: t.Req.Child.Type}
}
