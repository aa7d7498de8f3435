package pipeline

import (
	"errors"
	"slices"

	"codehand/tools/permission"
	"codehand/tools/tool"
	"codehand/tools/workspace"
)

// guardOpens has everything that the tool opens held against the decision about the call. Rules were asked about what a
// path led to then; another program may have put a link, or another link, on the way since. A call that names no path
// reaches files by other rules.
func guardOpens(c *call) {
	if c.state.Space == nil || !slices.ContainsFunc(c.bound.Targets, namesFile) {
		return
	}
	known := c.known
	c.state.Space = c.state.Space.Guarded(func(o workspace.Opened) error {
		if decidedAbout(known, o) {
			return nil
		}
		return decideOpened(c, *known, o)
	})
}

// decidedAbout says whether a file that was opened is one that the request names.
func decidedAbout(r *permission.Request, o workspace.Opened) bool {
	return slices.ContainsFunc(r.Targets, func(t permission.Target) bool {
		if r.PlanFile { // it may have other names: a change leaves those as they are
			return namesFile(t) && (o.Path == t.Real || o.Real() == t.Real)
		}
		return namesFile(t) && o.Is(t.Real, t.Also, !t.Unsure)
	})
}

func namesFile(t permission.Target) bool {
	return t.Kind == permission.Path && t.Use == permission.ByCall
}

// decideOpened asks the rules about an opened file that the decision r was not about: what they deny is refused as if
// the call had named it, and what the call may read, as a name near one that does not exist, is read. For the rest the
// call must be made again, because hooks and persons, too, have judged another file.
func decideOpened(c *call, r permission.Request, o workspace.Opened) error {
	names, whole := o.Names()
	r.Targets = []permission.Target{{Kind: permission.Path, Value: o.Asked, Real: o.Real(), Also: names,
		Unsure: !whole, Inside: o.Inside(), Folds: c.state.Rules.ComparesPaths() && o.Folds()}}
	r.ReadOnly = r.ReadOnly || o.Access == workspace.Read
	r.PlanFile, r.Judged = false, nil
	onDisk{c.state}.obeyed(&r)
	// a hook's allow was about the other file
	r.Opinions = slices.DeleteFunc(slices.Clone(r.Opinions),
		func(v permission.Verdict) bool { return v == permission.Allow })
	switch d := c.state.Rules.Decide(r); {
	case d.Verdict == permission.Allow && o.Access == workspace.Read:
		return nil
	case d.Verdict == permission.Deny:
		refused, _ := refusal(denial(c.bound.Spec.Name, d))
		refused.Cause = &deniedOpen{d, r}
		return refused
	}
	return tool.Refuse(tool.Busy,
		"%s leads to another file than when this call was checked. Nothing was done. Try again.", o.Asked)
}

// A deniedOpen is the cause of a refusal: a path led to what the rules deny when it was opened.
type deniedOpen struct {
	decision permission.Decision
	request  permission.Request
}

// Error names the file that was opened, for the log.
func (e *deniedOpen) Error() string {
	return "when it was opened the path led to " + e.request.Targets[0].Real
}

// toldDenied notes a call that was refused for what it opened, as one that was refused before it ran.
func toldDenied(c *call, err error) error {
	no, is := errors.AsType[*deniedOpen](err)
	if !is {
		return err
	}
	c.record.decided(no.decision, no.request)
	return c.denied(err)
}
