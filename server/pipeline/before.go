package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/session"
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
	// Tell runs them for an event that they cannot stop. It never waits for them.
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
	Allowed bool                 `json:"allowed,omitempty"` // whether the person allowed what Shown names
	Seen    string               `json:"seen,omitempty"`    // the question as the person saw it, digest
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

// before is stage 3: the operator's programs give their opinions. When they take long, the call gives up its place in
// the queue, so that no other call waits for them. After a person's answer they are not asked again.
func (c *call) before(ctx context.Context) error {
	fresh := c.found.Hooks == nil
	if fresh {
		if err := c.consult(ctx); err != nil {
			return err
		}
	}
	o := c.found.Hooks
	if slices.Contains(o.Opinions, permission.Deny) {
		c.record.Origin = o.Origin
		return blocked(o.Origin, o.Reason)
	}
	if o.Input == nil {
		return nil
	}
	// What a hook writes is an input like any other.
	if err := c.take(ctx, o.Input); err != nil {
		return notYours(err)
	}
	if err := c.plan(ctx); err != nil || !fresh {
		return err
	}
	defer c.visit.asideAfter(hookPatience)()
	var err error
	c.found.Judged, err = c.pipe.judge(ctx, c.state.Rules, c.event()) // it had judged the input before hooks changed it
	return err
}

// Started returns what the hooks of SubagentStart decided: the text that they add to the instructions of the sub-agent,
// or the refusal of its start. A hook that wants a person to decide blocks the start, since no person is asked.
func Started(o hooks.Outcome) (added string, err error) {
	switch reason := o.Reason; {
	case slices.Contains(o.Opinions, permission.Deny):
		return "", blocked(o.Origin, reason)
	case slices.Contains(o.Opinions, permission.Ask):
		if strings.TrimSpace(reason) == "" {
			reason = "it wants a person to decide"
		}
		return "", blocked(o.Origin, reason+" (nobody is asked about the start of a sub-agent)")
	}
	return hookText(o.Context), nil
}

// blocked is the refusal of the hooks that stand at origin.
func blocked(origin, reason string) error {
	if reason = strings.TrimSpace(hookText(reason)); reason == "" {
		reason = "it gave no reason"
	}
	text := "Blocked by a hook: " + reason + "\nThe operator can change that hook"
	if origin != "" {
		text += " (" + origin + ")"
	}
	return tool.Refuse(tool.HookBlocked, "%s; tell the user.", text)
}

// notYours says of a refusal of an input that a hook wrote whose mistake it is: the caller cannot mend it.
func notYours(err error) error {
	r, ok := refusal(err)
	if !ok {
		return err
	}
	told := *r
	told.Text += "\nThe operator's hook replaced your input with this one. Tell the user."
	return &told
}

// consult asks hooks and classifier, at the same time: neither needs the other. When a hook says no, the call does not
// wait for the classifier.
func (c *call) consult(ctx context.Context) error {
	c.found.Judged = nil
	if !c.pipe.wants(hooks.PreToolUse) && !c.pipe.judges(c.mode) {
		c.found.Hooks = &hooks.Outcome{}
		return nil
	}
	defer c.visit.asideAfter(hookPatience)()
	e := c.event()
	judging, enough := context.WithCancel(ctx)
	defer enough()
	var both sync.WaitGroup
	var verdicts []permission.Verdict
	var failed error
	both.Go(func() {
		failed = guarded(func() (err error) { verdicts, err = c.pipe.judge(judging, c.state.Rules, e); return err })
	})
	o, err := c.pipe.askHooks(ctx, e)
	blocked := err != nil || slices.Contains(o.Opinions, permission.Deny)
	if blocked {
		enough()
	}
	both.Wait()
	if err != nil {
		return err
	}
	c.found.Hooks = &o
	if blocked {
		return nil
	}
	c.found.Judged = verdicts
	return failed
}

func (p *Pipeline) askHooks(ctx context.Context, e hooks.Event) (hooks.Outcome, error) {
	if !p.wants(hooks.PreToolUse) {
		return hooks.Outcome{}, nil
	}
	o, err := p.Hooks.Before(ctx, e)
	if gone := interrupted(ctx); gone != nil {
		return o, gone
	}
	if err != nil {
		return o, fmt.Errorf("run the hooks before %s: %w", e.Tool, err)
	}
	return o, nil
}

// judge lets the operator's classifier command judge a call in mode auto; nil: there is none. Where the mode allows the
// call without it, or nothing could, it is not started.
func (p *Pipeline) judge(ctx context.Context, rules *permission.Policy, e hooks.Event) ([]permission.Verdict, error) {
	if !p.judges(e.Mode) {
		return nil, nil
	}
	r := e.Request
	r.Opinions, r.Judged = nil, []permission.Verdict{permission.Ask}
	if d := rules.Decide(r); d.Verdict != permission.Ask || d.Hard {
		return r.Judged, nil
	}
	v, err := p.Classify(ctx, e)
	if gone := interrupted(ctx); gone != nil {
		return nil, gone
	}
	if err != nil {
		return nil, fmt.Errorf("run the classifier for %s: %w", e.Tool, err)
	}
	return []permission.Verdict{v}, nil
}

// judges says whether there is a classifier for this mode.
func (p *Pipeline) judges(mode permission.Mode) bool {
	return p.Classify != nil && mode == permission.Auto
}

// wants says whether a hook is told of the event.
func (p *Pipeline) wants(event string) bool { return p.Hooks != nil && p.Hooks.Wants(event) }

// event is what hooks are told of this call.
func (c *call) event() hooks.Event {
	e := hooks.Event{
		Session: c.state.Key.Session, Call: c.visit.id, Tool: c.bound.Spec.Name,
		Aliases: c.bound.Spec.OtherNames(),
		Mode:    c.mode, Input: c.bound.Input, Request: c.asKnown(),
		Agent: c.arrival.Agent.ID, AgentType: c.arrival.Agent.Type,
	}
	e.Confine = confineHook(c.state)
	if c.state.Space != nil {
		e.Cwd, e.Roots = c.state.Space.Cwd(), c.state.Space.Roots()
		for _, root := range c.state.Space.Whole() { // what a client leaves out lifts no condition
			if !slices.Contains(e.Roots, root) {
				e.Roots = append(e.Roots, root)
			}
		}
	}
	return e
}

// SessionEvent is what hooks are told of a session itself, before what the event is about is filled in.
func SessionEvent(name string, st *session.State) hooks.Event {
	e := hooks.Event{Name: name, Session: st.Key.Session, Mode: st.Start}
	e.Confine = confineHook(st)
	if st.Space != nil {
		e.Cwd, e.Roots = st.Space.Cwd(), st.Space.Roots()
	}
	return e
}

// confineHook returns how hooks of a project are confined that are told of something in a session.
func confineHook(s *session.State) func(background bool) (hooks.Confined, error) {
	return func(background bool) (hooks.Confined, error) {
		c, err := s.ConfineProgram(background)
		return hooks.Confined{Profile: c.Profile, Level: c.Level, Groups: c.Groups, Env: c.Env, Serve: c.Serve}, err
	}
}

// hookText is what of a hook's text is used: without control sequences and lines that look like ours, cut.
func hookText(text string) string { return results.Disown(hooks.Clip(results.Clean(hooks.Clip(text)))) }
