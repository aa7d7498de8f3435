package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// An Explanation is what would become of a call, and why.
type Explanation struct {
	Request  permission.Request
	Decision permission.Decision
	Refusal  *tool.Refusal // what the call is refused for without a decision: its input, the plan mode; nil: nothing
	ByClient bool          // an ask would be left to the client's own dialog: the call would run
	Question string        // what a person would be asked; "": nothing
	Suggests string        // the rule that would allow the call; "": none would
	Unheard  bool          // hooks or a classifier would be asked about the call, and may decide otherwise
}

// Explain walks a call up to its decision, by the same code as a call that runs. It runs nothing, asks no person and
// starts no hook. Errors are those of a Store that does not answer, and faults.
func (p *Pipeline) Explain(ctx context.Context, s *session.State, t tool.Tool,
	raw json.RawMessage) (Explanation, error) {
	c := &call{pipe: p, state: s, tool: t}
	var e Explanation
	err := c.bindAndPlan(ctx, raw)
	if refused, ok := errors.AsType[*tool.Refusal](err); ok {
		e.Refusal = refused
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("explain a call of %s: %w", t.Spec.Name, err)
	}
	e.Unheard = c.pipe.wants(hooks.PreToolUse) || c.pipe.wants(hooks.PermissionRequest) || p.judges(c.mode)
	c.found.Hooks = &hooks.Outcome{}
	e.Request, e.Decision = c.decide(ctx)
	if e.Decision.Verdict == permission.Ask {
		e.ByClient = !e.Decision.Hard && p.AskFallback == AskClient
		q := (&decided{call: c, about: e.Request, decision: e.Decision}).permissionQuestion(ctx, "")
		e.Question, e.Suggests = q.Text, q.rule
	}
	return e, nil
}

// bindAndPlan is stages 1 and 2 for a call that is not going to run.
func (c *call) bindAndPlan(ctx context.Context, raw json.RawMessage) error {
	if reason := c.tool.Unavailable(c.state); reason != "" {
		return tool.Refuse(tool.ToolDisabled, "%s is not available: %s", c.tool.Spec.Name, reason)
	}
	if err := c.take(ctx, raw); err != nil {
		return err
	}
	return c.plan(ctx)
}
