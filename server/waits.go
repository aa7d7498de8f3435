package server

import (
	"context"

	"codehand/server/asking"
	"codehand/server/config"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/waiting"
	"codehand/tools/agent"
	"codehand/tools/tool"
)

// useWaiting lets modern calls ask their client while they work, where something may: that costs each of them a
// goroutine.
func (c *corridor) useWaiting(asks *asking.Asker, cfg config.Config, agents *agent.Runner, r replies.Replies) {
	c.asks = asks
	if cfg.Web.Sampling || agents.InForce(true) != agent.None {
		c.waiting = waiting.New(asks.Life, func(asked map[string]waiting.Asked, state string) request.Answer {
			return r.Question(asked, state)
		})
	}
}

// resume goes on with the call of a modern client that waits for the answers which this request brings.
func (t *turn) resume(ctx context.Context) request.Answer {
	if e := t.s.replies.Unserved(t.Req.Envelope); e != nil {
		return replies.Failed(e)
	}
	var work request.Work
	err := waiting.ErrOver
	if t.s.waiting != nil {
		work, err = t.s.waiting.Resume(t.Req)
	}
	if err != nil {
		a := t.s.replies.Refuse(t.Req.Envelope, true, tool.Refuse(tool.Interrupted, "This call is over: its answer "+
			"came twice, too late, with other arguments, or after codehand was restarted. Look at what the call has "+
			"done before you make it again."))
		a.Tool = t.tool()
		return a
	}
	return work(ctx)
}
