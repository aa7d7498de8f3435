package pipeline

import (
	"slices"

	"codehand/tools/permission"
)

// request collects all that the decision depends on.
func (c *call) request() permission.Request {
	r := permission.Request{
		Tool: c.bound.Spec.Name, Aliases: c.bound.Spec.Aliases, Input: c.bound.Input,
		Targets:  slices.Clone(c.bound.Targets),
		ReadOnly: c.bound.Traits.ReadOnly, Private: c.bound.Traits.Private,
		Own: c.bound.Verdict, Judged: c.found.Judged, Mode: c.mode, PlanFile: c.planFile,
	}
	if c.found.Hooks != nil { // else stage 3 asks: a condition of a hook is held against this, too
		r.Opinions = c.found.Hooks.Opinions
	}
	if c.state.Space == nil {
		return r // no target is inside
	}
	r.Cwd = c.state.Space.Cwd()
	for i, t := range r.Targets {
		if t.Kind == permission.Path {
			r.Targets[i].Real, r.Targets[i].Inside = c.state.Space.Resolve(t.Value)
		}
	}
	return r
}
