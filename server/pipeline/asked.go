package pipeline

import (
	"context"
	"fmt"
	"slices"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/tool"
)

// hookDecision lets PermissionRequest hooks decide what a person would be asked, here or by the client's own dialog.
// They are asked once, however often the call comes back. Allow: the call runs; it is never the answer to a hard ask,
// which only a person may lift. Deny: the error is the refusal. Ask: they leave it to the person. What was decided is
// noted in the record.
func (c *decided) hookDecision(ctx context.Context) (v permission.Verdict, reason string, err error) {
	if c.found.Request == nil {
		o, err := c.askRequestHooks(ctx)
		if err != nil {
			return permission.Deny, "", err
		}
		c.found.Request = &o
	}
	o := c.found.Request
	reason = hookText(o.Reason)
	switch {
	case slices.Contains(o.Opinions, permission.Deny):
		c.record.Verdict, c.record.Decision, c.record.By, c.record.Origin = "deny", denied, byHook, o.Origin
		return permission.Deny, reason, blocked(o.Origin, reason)
	case slices.Contains(o.Opinions, permission.Ask) || !slices.Contains(o.Opinions, permission.Allow):
		return permission.Ask, reason, nil
	case c.decision.Hard:
		c.pipe.log().InfoContext(ctx, "a hook's allow does not count where a person must decide", "tool",
			c.bound.Spec.Name,
			"call", c.visit.id)
		return permission.Ask, reason, nil
	case o.Input != nil:
		// The input was checked, planned and decided about before; one that comes now was not.
		c.pipe.log().WarnContext(ctx, "a PermissionRequest hook's allow for another input does not count",
			"tool", c.bound.Spec.Name, "call", c.visit.id)
		return permission.Ask, reason, nil
	}
	c.record.Verdict, c.record.Decision, c.record.By, c.record.Origin = "allow", askAllowed, byHook, o.Origin
	return permission.Allow, reason, nil
}

func (c *decided) askRequestHooks(ctx context.Context) (hooks.Outcome, error) {
	if !c.pipe.wants(hooks.PermissionRequest) {
		return hooks.Outcome{}, nil
	}
	defer c.visit.asideAfter(hookPatience)()
	e := c.event()
	e.Reason = because(c.decision)
	o, err := c.pipe.Hooks.Asked(ctx, e)
	if gone := interrupted(ctx); gone != nil {
		return o, gone
	}
	if err != nil {
		return o, fmt.Errorf("run the hooks that may decide %s: %w", c.bound.Spec.Name, err)
	}
	return o, nil
}

// denied tells hooks of a call that was not permitted, and returns why it was not.
func (c *call) denied(err error) error {
	r, ok := refusal(err)
	if !ok || !c.pipe.wants(hooks.PermissionDenied) {
		return err
	}
	switch r.Code {
	case tool.PermissionDenied, tool.AskUnavailable, tool.UserDeclined:
		e := c.event()
		e.Name, e.Reason = hooks.PermissionDenied, r.Text
		c.pipe.Hooks.Tell(e)
	}
	return err
}
