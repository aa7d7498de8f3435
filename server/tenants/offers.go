package tenants

import (
	"path/filepath"

	"codehand/server/toolset"
	"codehand/tools/agent"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// Offers are what is offered to clients that can be asked, or cannot.
func (t *Tenant) Offers(canAsk bool) toolset.Offer {
	if canAsk {
		return t.asked
	}
	return t.unasked
}

// agentTool is the tool that starts sub-agents.
const agentTool = "agent"

// arrange makes the offers of a tenant, once.
func (m *Maker) arrange(t *Tenant) {
	cannot := *t.Bare
	cannot.Client.CanAsk = false
	var all, unasked []tool.Tool
	for _, x := range m.Tools {
		if t.Off(x) {
			continue
		}
		all = append(all, x)
		if x.Unavailable(&cannot) == "" {
			unasked = append(unasked, x)
		}
	}
	lists := m.lists()
	lists.Backends = m.backends()
	if t.Bare.Shell != nil {
		lists.PowerShell = t.Bare.Shell.Dialect().PowerShell
	}
	if text := whoExecutes(t.Bare); text != "" {
		if lists.Backends == nil {
			lists.Backends = map[string]string{}
		}
		lists.Backends[agentTool] = text
	}
	t.asked, t.unasked = lists.Offer(all, true), lists.Offer(unasked, false)
}

// whoExecutes says who executes the sub-agents of a session, where that is not nobody.
func whoExecutes(s *session.State) string {
	switch s.Runner.InForce(s.Samples) {
	case agent.API:
		return "Here a model executes it: " + s.Runner.Models[0] + "."
	case agent.Program:
		return "Here another agent executes it: " + filepath.Base(s.Runner.Command.Argv[0]) + "."
	case agent.Sampling:
		return "Here the model of your client executes it, if the client lets it."
	}
	return ""
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

// backends says which back-ends of the operator answer, by the name of the tool.
func (m *Maker) backends() map[string]string {
	all := map[string]string{}
	if m.WebSearch != nil {
		all["web_search"] = "Searches go to " + m.WebSearch.Name() + "."
	}
	return all
}
