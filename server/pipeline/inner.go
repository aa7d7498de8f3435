package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"codehand/tools/permission"
	"codehand/tools/tool"
)

// An Inner is a tool that a call may call, as Arrival.Find finds it.
type Inner struct {
	Tool tool.Tool
	// waits for its turn, and says what server refuses it for; it is recorded then and not run
	Admit func(context.Context) *tool.Refusal
	Leave func() // run when the call is over
}

// An inside is what a call knows that another call makes.
type inside struct {
	lent []permission.Grant // rules that count for it alone
}

// inner runs another tool as a call of its own, with its own turn at the gate, its own hooks and its own record. It
// asks neither a person nor the client's dialog: they were shown another call. It comes from within, so it makes no
// calls itself.
func (c *call) inner(ctx context.Context, name string, input json.RawMessage, loan *tool.Loan) (tool.Result, error) {
	at := *c.state // its tool may not change what this one has
	var v *Visit
	found, ok := c.arrival.Find(name, func() { v = c.pipe.visit(&at) })
	if !ok {
		return tool.Result{}, fmt.Errorf("%s calls a tool %s, which there is not", c.bound.Spec.Name, name)
	}
	defer found.Leave()
	defer v.Leave()
	c.visit.answers(v.id)
	v.arrived = c.visit.arrived // it is the same answer that a client waits for
	a := Arrival{
		Progress: c.progress, Token: c.arrival.Token, Via: c.bound.Spec.Name, From: c.arrival.From,
		Admission: Admission{Refused: found.Admit(ctx)},
		Lost:      c.arrival.Lost, inside: &inside{},
	}
	if loan != nil {
		a.inside.lent = permission.WithLoan(nil, loan.Skill, loan.Rules, time.Now(), loan.Life)
	}
	result, err := v.Call(ctx, found.Tool, input, a)
	c.visit.commanded = c.visit.commanded || v.commanded
	return result, err
}

// mayCall says whether the call may make calls: it must hold no turn at the gate, or they would wait for it for ever.
func (c *call) mayCall() bool {
	return c.bound.Traits.Ungated && c.arrival.Find != nil && c.arrival.inside == nil
}

// lend keeps the rules that a call lends, in the place of earlier ones. A session that several conversations share gets
// none, since a loan is for one; nor does a call from within another lend anything.
func (r *ran) lend(ctx context.Context) {
	loan := r.result.Lends
	if loan == nil || r.state.Shared || r.arrival.inside != nil {
		return
	}
	all, err := r.state.Grants.Load(ctx)
	if err == nil && len(loan.Rules) == 0 && !permission.Lent(all) {
		return // there is nothing to end
	}
	if err == nil {
		now := time.Now()
		_, err = r.state.Grants.Change(ctx, func(all []permission.Grant) ([]permission.Grant, error) {
			return permission.WithLoan(all, loan.Skill, loan.Rules, now, loan.Life), nil
		})
	}
	if err != nil {
		r.result.Text += "\n[the state store does not answer: the rules of this skill are not in force]"
		r.pipe.log().WarnContext(ctx, "what a skill lends cannot be kept", "tool", r.bound.Spec.Name,
			"call", r.visit.id,
			"error", err)
	}
}
