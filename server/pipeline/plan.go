package pipeline

import (
	"context"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
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
	if c.bound.Contain() {
		c.record.ReadOnly = true
		return nil
	}
	plan, err := c.state.Plan.Load(ctx)
	if err != nil {
		return stateUnavailable(ctx, err)
	}
	if c.planFile = plan.Path != "" && onlyTouches(c.state, c.bound.Targets, plan.Path); c.planFile {
		return nil
	}
	switch {
	case c.state.Depth > 0: // it has neither of the two tools
		return tool.Refuse(tool.PlanMode,
			"Blocked in plan mode: %s. Only read-only tools are allowed. Go on without it, and say in your report "+
				"what is to be changed.", c.bound.Spec.Name)
	case plan.Path == "":
		return tool.Refuse(tool.PlanMode,
			"Blocked in plan mode: %s. Only read-only tools are allowed. Call enter_plan_mode to get a plan file, "+
				"and exit_plan_mode when the plan is ready.", c.bound.Spec.Name)
	}
	return tool.Refuse(tool.PlanMode,
		"Blocked in plan mode: %s. Only read-only tools and the plan file %s are allowed. Call exit_plan_mode when "+
			"the plan is ready.", c.bound.Spec.Name, plan.Path)
}

// loadMode finds the mode of the session. When the Store does not answer, the session may have been narrowed: only
// readers go on, under the stricter of the configured mode and the mode that asks.
func (c *call) loadMode(ctx context.Context) error {
	now := time.Now()
	shown := c.arrival.Located
	c.arrival.Located = session.Snapshot{} // each further look is after a wait, so it reads the Store
	mode, plan, err := c.state.InForceIn(ctx, shown, now)
	switch {
	case err != nil && !c.bound.Traits.ReadOnly:
		return stateUnavailable(ctx, err)
	case err != nil:
		if gone := interrupted(ctx); gone != nil {
			return gone
		}
		mode = permission.Default
		if c.state.Start == permission.DontAsk {
			mode = permission.DontAsk
		}
		mode = mode.AtMost(c.state.Highest)
	case mode == permission.Plan && c.state.Shared && now.Sub(plan.Last) > planNoted:
		c.pipe.notePlan(ctx, c.state, now)
	}
	c.mode = mode
	c.record.Mode = c.mode.String()
	return nil
}

// planNoted is how exactly the last call in a shared plan mode is known; a write for each call would be too much.
const planNoted = time.Minute

// notePlan notes that a shared plan mode is in use. If that fails, it may end early, and the next call tries again.
func (p *Pipeline) notePlan(ctx context.Context, state *session.State, now time.Time) {
	_, err := state.Plan.Change(ctx, func(plan session.Plan) (session.Plan, error) {
		if now.After(plan.Last) {
			plan.Last = now
		}
		return plan, nil
	})
	if err != nil && ctx.Err() == nil {
		p.log().WarnContext(ctx, "note a call in plan mode", "error", err)
	}
}

// onlyTouches says that the call's targets are all the file at path, and that there is one. A hard link is the same
// file under another name, and a change would leave the file and replace the name. A link at path itself would make any
// file the plan.
func onlyTouches(state *session.State, targets []permission.Target, path string) bool {
	own, _ := state.Space.Resolve(path)
	if own != path {
		return false
	}
	for _, t := range targets {
		if t.Kind != permission.Path || !state.Space.Same(t.Value, path) {
			return false
		}
		if real, _ := state.Space.Resolve(t.Value); real != own {
			return false
		}
	}
	return len(targets) > 0
}

// stateUnavailable is the refusal of a call that would change something while the Store does not answer.
func stateUnavailable(ctx context.Context, cause error) error {
	if gone := interrupted(ctx); gone != nil {
		return gone
	}
	return &tool.Refusal{
		Code:  tool.StateUnavailable,
		Text:  "The state store does not answer, so changes are refused. Reading works. Try again.",
		Cause: cause,
	}
}

const interruptedText = "Tool execution cancelled by user."

// interrupted is the refusal of a call that was cancelled before it ran; nil: it was not.
func interrupted(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &tool.Refusal{Code: tool.Interrupted, Text: interruptedText, Cause: context.Cause(ctx)}
}
