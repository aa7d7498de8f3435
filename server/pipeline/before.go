package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/tool"
)

// Hooks are the operator's programs around a call. The engine that runs them declares their limits: a crash or a
// timeout is no opinion there, and an error here means that it could not do its work at all.
type Hooks interface {
	// Before asks the hooks about a call that has been validated.
	Before(context.Context, hooks.Event) (hooks.Outcome, error)
	// Asked asks them when a person would be asked.
	Asked(context.Context, hooks.Event) (hooks.Outcome, error)
	// After tells the hooks what became of it.
	After(context.Context, hooks.Event) (hooks.Outcome, error)
	// Wants says whether any hook is told of the event of that name.
	Wants(event string) bool
	// Tell tells them of an event that nobody decides about. It never waits for them.
	Tell(hooks.Event)
}

// found is what stages 3 and 4 have found before a person was asked. It travels with the question, so that neither
// hooks nor people are asked twice.
type found struct {
	Hooks   *hooks.Outcome       `json:"hooks,omitempty"`   // nil: stage 3 was not reached
	Judged  []permission.Verdict `json:"judged,omitempty"`  // by the operator's classifier command; nil: it was not asked
	Request *hooks.Outcome       `json:"request,omitempty"` // of PermissionRequest hooks; nil: they were not asked
	Asked   string               `json:"asked,omitempty"`   // which question the reply answers
	Shown   string               `json:"shown,omitempty"`   // digest of the question about permission and of the input that it was about
	Allowed bool                 `json:"allowed,omitempty"` // what was shown
}

// The questions of a call.
const (
	askedPermission = "permission"
	askedTool       = "tool"
)

// recall takes over what was found before the question that this call's reply answers. A reply to another input is no
// reply.
func (c *call) recall() {
	r := c.arrival.Reply
	if r == nil {
		return
	}
	var f found
	if r.Digest != c.digest || json.Unmarshal(r.Before, &f) != nil {
		c.arrival.Reply = nil
		return
	}
	c.found = f
}

// before is stage 3: the operator's programs give their opinions. When they take long, the call's place in the queue
// is given up, so that nobody waits for them.
func (c *call) before(ctx context.Context) error {
	if c.found.Hooks == nil {
		o, err := c.askHooks(ctx)
		if err != nil {
			return err
		}
		c.found.Hooks = &o
	}
	o := c.found.Hooks
	if slices.Contains(o.Opinions, permission.Deny) {
		return tool.Refuse(tool.HookBlocked, "Blocked by a hook: %s", hookText(o.Reason))
	}
	if o.Input == nil {
		return nil
	}
	// What a hook writes is an input like any other.
	if err := c.take(o.Input); err != nil {
		return err
	}
	return c.plan(ctx)
}

func (c *call) askHooks(ctx context.Context) (hooks.Outcome, error) {
	if c.pipe.Hooks == nil {
		return hooks.Outcome{}, nil
	}
	aside := time.AfterFunc(hookPatience, c.visit.stepAside)
	defer aside.Stop()
	o, err := c.pipe.Hooks.Before(ctx, c.event())
	if gone := interrupted(ctx); gone != nil {
		return o, gone
	}
	if err != nil {
		return o, fmt.Errorf("run the hooks before %s: %w", c.bound.Spec.Name, err)
	}
	return o, nil
}

// event is what hooks are told of this call.
func (c *call) event() hooks.Event {
	e := hooks.Event{
		Session: c.state.Key.Session, Call: c.visit.id, Tool: c.bound.Spec.Name, Aliases: c.bound.Spec.Aliases,
		Mode: c.mode, Input: c.bound.Input,
	}
	if c.state.Space != nil {
		e.Cwd, e.Roots = c.state.Space.Cwd(), c.state.Space.Roots()
	}
	return e
}

// maxHookText is how many runes of each thing that a hook says are used.
const maxHookText = 10_000

// hookText is what of a hook's text is used: without control sequences, cut.
func hookText(text string) string { return clip(results.Clean(clip(text))) }

// clip cuts what a hook said.
func clip(text string) string {
	n := 0
	for i := range text {
		if n == maxHookText {
			return text[:i]
		}
		n++
	}
	return text
}
