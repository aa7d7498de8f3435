package pipeline

import (
	"slices"

	"codehand/tools/permission"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// guard has everything that the tool opens held against the decision about the call. Rules were asked about what a path
// led to then; another program may have put a link, or another link, on the way since. A call that names no path
// reaches files by other rules.
func (c *call) guard() {
	if c.state.Space != nil && slices.ContainsFunc(c.bound.Targets, namesFile) {
		c.state.Space = c.state.Space.Guarded(c.allowOpened)
	}
}

func allows(v permission.Verdict) bool { return v == permission.Allow }

func namesFile(t permission.Target) bool {
	return t.Kind == permission.Path && t.Use == permission.ByCall
}

// allowOpened lets pass what the decision was about. Of anything else it asks the rules anew: what they deny is refused as if
// the call had named it, and what the call may read, as a name near one that does not exist, is read. For the rest the
// call must be made again, because hooks and persons, too, have judged another file.
func (c *call) allowOpened(o workspace.Opened) error {
	for i := range c.known.Targets {
		if t := &c.known.Targets[i]; namesFile(*t) && o.Is(t.Real, t.Also, !t.Unsure) {
			return nil
		}
	}
	names, whole := o.Names()
	r := *c.known
	r.Targets = []permission.Target{{Kind: permission.Path, Value: o.Asked, Real: o.Real(), Also: names,
		Unsure: !whole, Inside: o.Inside(), Folds: c.state.Rules.ComparesPaths() && o.Folds()}}
	r.ReadOnly = r.ReadOnly || o.Access == workspace.Read
	r.PlanFile, r.Judged = false, nil
	r.Opinions = slices.DeleteFunc(slices.Clone(r.Opinions), allows) // a hook's allow was about the other one
	switch d := c.state.Rules.Decide(r); {
	case d.Verdict == permission.Allow && o.Access == workspace.Read:
		return nil
	case d.Verdict == permission.Deny:
		c.record.decided(d, r)
		return c.denial(d)
	}
	return tool.Refuse(tool.Busy,
		"%s leads to another file than when this call was checked. Nothing was done. Try again.", o.Asked)
}
