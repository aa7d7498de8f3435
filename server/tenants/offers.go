package tenants

import (
	"codehand/server/toolset"
	"codehand/tools/tool"
)

// Offers are what is offered to clients that can be asked, or cannot.
func (t *Tenant) Offers(canAsk bool) toolset.Offer {
	if canAsk {
		return t.asked
	}
	return t.unasked
}

// arrange makes the offers of a tenant, once.
func (m *Maker) arrange(t *Tenant) {
	cannot := *t.Bare
	cannot.Client.CanAsk = false
	var all, unasked []tool.Tool
	for _, x := range m.Tools {
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
	lists := m.lists()
	if t.Bare.Shell != nil {
		lists.PowerShell = t.Bare.Shell.Dialect().PowerShell
	}
	t.asked, t.unasked = lists.Offer(all, true), lists.Offer(unasked, false)
}

// Off says that no session of this tenant can use the tool: a bare deny rule or the token forbids it, or its back-end
// is missing.
func (t *Tenant) Off(x tool.Tool) bool {
	return t.Rules.Off(x.Spec.Name, x.Spec.Aliases, x.Spec.Family) || x.Unavailable(t.Bare) != "" || t.Forbids(x) != nil
}

// Lists are what the operator says about lists of tools.
func (m *Maker) lists() toolset.Lists {
	return toolset.Lists{Deferral: m.Config.Tools.Deferral, Always: m.Config.Tools.Always}
}
