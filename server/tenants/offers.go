package tenants

import (
	"codehand/server/toolset"
	"codehand/tools/tool"
)

// Offers are what is offered to clients that can be asked, or cannot.
func (t *Tenant) Offers(canAsk bool) toolset.Offer {
	all, revision := t.tools.Now()
	o := t.offers.Load()
	if o == nil || o.revision != revision {
		o = t.arrange(all)
		o.revision = revision
		t.offers.Store(o)
	}
	if canAsk {
		return o.asked
	}
	return o.unasked
}

// offers are those of one revision of the tools. They do not change.
type offers struct {
	revision uint64
	asked    toolset.Offer // to clients that can be asked
	unasked  toolset.Offer // to those that cannot
}

// arrange makes the offers of a tenant out of these tools.
func (t *Tenant) arrange(tools []tool.Tool) *offers {
	cannot := *t.Bare
	cannot.Client.CanAsk = false
	var all, unasked []tool.Tool
	for _, x := range tools {
		if t.Off(x) {
			continue
		}
		missing := x.Unavailable(&cannot) != ""
		if x.Spec.Answers != "" {
			x.Spec.Description += "\n" + x.Spec.Answers
		}
		all = append(all, x)
		if !missing {
			unasked = append(unasked, x)
		}
	}
	lists := t.tools.Lists
	if t.Bare.Shell != nil {
		lists.PowerShell = t.Bare.Shell.Dialect().PowerShell
	}
	return &offers{asked: lists.Offer(all, true), unasked: lists.Offer(unasked, false)}
}

// Off says that no session of this tenant can use the tool: a bare deny rule or the token forbids it, or its back-end
// is missing.
func (t *Tenant) Off(x tool.Tool) bool {
	return t.Rules.Off(x.Spec.Name, x.Spec.OtherNames(), x.Spec.Family) ||
		x.Unavailable(t.Bare) != "" || t.beyond(x) != nil
}
