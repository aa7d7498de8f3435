package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Hooks are the operator's programs around a call. The engine that runs them declares their limits: a crash or a
// timeout is no opinion there, and an error here means that it could not do its work at all.
type Hooks interface {
	// Before asks the hooks about a call that has been validated.
	Before(context.Context, Event) (Outcome, error)
	// After tells the hooks what became of it.
	After(context.Context, Event) (Outcome, error)
}

// An Event is what hooks are told.
type Event struct {
	Key     session.Key
	Call    string
	Tool    string
	Aliases []string
	Cwd     string
	Mode    permission.Mode
	Input   json.RawMessage // canonical

	// After only.
	Response string // as bounded
	Failed   bool
	Took     time.Duration // of Run
}

// An Outcome is what hooks said. The zero value says nothing.
type Outcome struct {
	Opinions []permission.Verdict // one Deny blocks the call
	Reason   string               // of the strictest opinion
	Input    json.RawMessage      // Before only: the whole input that takes the place of the old one; nil: unchanged
	Context  string               // After only: added to the text
	Output   *string              // After only: takes the place of the text; nil: unchanged
}

// found is what stages 3 and 4 have found before a person was asked. It travels with the question, so that neither
// hooks nor people are asked twice.
type found struct {
	Hooks   *Outcome `json:"hooks,omitempty"` // nil: stage 3 was not reached
	Asked   string   `json:"asked,omitempty"` // which question the reply answers
	Allowed bool     `json:"allowed,omitempty"`
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
		return tool.Refuse(tool.HookBlocked, "Blocked by a hook: %s", clip(o.Reason))
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

func (c *call) askHooks(ctx context.Context) (Outcome, error) {
	if c.pipe.Hooks == nil {
		return Outcome{}, nil
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

func (c *call) event() Event {
	e := Event{
		Key: c.state.Key, Call: c.visit.id, Tool: c.bound.Spec.Name, Aliases: c.bound.Spec.Aliases,
		Mode: c.mode, Input: c.bound.Input,
	}
	if c.state.Space != nil {
		e.Cwd = c.state.Space.Cwd()
	}
	return e
}

// maxHookText is how many runes of each thing that a hook says are used.
const maxHookText = 10_000

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
