package pipeline

import (
	"context"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

// plan is stage 2: in plan mode only calls that change nothing but the plan go on.
func (c *call) plan(ctx context.Context) error {
	c.planFile = false
	if err := c.loadMode(ctx); err != nil {
		return err
	}
	t := c.bound.Traits
	if c.mode != permission.Plan || t.ReadOnly || t.Private {
		return nil
	}
	plan, err := c.state.Plan.Load(ctx)
	if err != nil {
		return c.stateUnavailable(ctx, err)
	}
	if c.planFile = plan.Path != "" && c.onlyTouches(plan.Path); c.planFile {
		return nil
	}
	allowed := "Only read-only tools are allowed."
	if plan.Path != "" {
		allowed = "Only read-only tools and the plan file " + plan.Path + " are allowed."
	}
	return tool.Refuse(tool.PlanMode, "Blocked in plan mode: %s. %s The operator can change permissions.mode.", c.bound.Spec.Name, allowed)
}

// loadMode finds the mode of the session: what its cell holds, else what is configured. When the Store does not
// answer, nobody knows whether the session had been narrowed: only readers go on, under the stricter of what is
// configured and what asks.
func (c *call) loadMode(ctx context.Context) error {
	mode, err := c.state.Mode.Load(ctx)
	switch {
	case err != nil && !c.bound.Traits.ReadOnly:
		return c.stateUnavailable(ctx, err)
	case err != nil:
		if gone := interrupted(ctx); gone != nil {
			return gone
		}
		mode = permission.Default
		if c.state.Start == permission.DontAsk {
			mode = permission.DontAsk
		}
	case mode == permission.Default:
		mode = c.state.Start
	}
	c.mode = mode.AtMost(c.state.Highest)
	c.record.Mode = c.mode.String()
	return nil
}

// onlyTouches says that the call's targets are all the file at path, and that there is one.
func (c *call) onlyTouches(path string) bool {
	for _, t := range c.bound.Targets {
		if t.Kind != permission.Path || !c.state.Space.Same(t.Value, path) {
			return false
		}
	}
	return len(c.bound.Targets) > 0
}

func (c *call) stateUnavailable(ctx context.Context, cause error) error {
	if gone := interrupted(ctx); gone != nil {
		return gone
	}
	return &tool.Refusal{
		Code:  tool.StateUnavailable,
		Text:  "The state store does not answer. Reading works, changes are refused. Try again.",
		Cause: cause,
	}
}

const interruptedText = "Interrupted by the client."

// interrupted is the refusal of a call that was cancelled before it ran; nil: it was not.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &tool.Refusal{Code: tool.Interrupted, Text: interruptedText, Cause: context.Cause(ctx)}
}
