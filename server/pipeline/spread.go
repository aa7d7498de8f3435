package pipeline

import (
	"path/filepath"

	"codehand/tools/bash"
	"codehand/tools/permission"
)

// spreads are the places in which a command touches files that it does not name, each with the files there that a rule
// is about: such a command is held against the rule as if it had named them. What decides is told by the place, so a
// refusal names no file that nobody may see. Without a rule about paths nothing is looked at.
func (c *call) spreads(a *bash.Analysis) []permission.Target {
	if !c.state.Rules.ComparesPaths() {
		return nil
	}
	targets := make([]permission.Target, 0, len(a.Spreads))
	for i := range a.Spreads {
		s := &a.Spreads[i]
		t := permission.Target{Kind: permission.Path, Value: c.opened(s.Dir), Use: permission.CommandReads}
		ruled := func(path string) permission.Verdict { return c.state.Rules.Ruled(path, s.Write) }
		switch {
		case s.Perhaps:
			t.Use = permission.CommandPerhaps
			ruled = func(path string) permission.Verdict {
				return min(c.state.Rules.Ruled(path, false), c.state.Rules.Ruled(path, true))
			}
		case s.Write:
			t.Use = permission.CommandWrites
		}
		c.resolve(&t)
		if !t.Inside || !s.Perhaps && !c.state.Rules.Compares(s.Write) {
			continue
		}
		worst := permission.Allow
		whole := c.state.Space.Below(t.Value, s.Reaches, func(rel string, names []string) bool {
			for _, name := range append(names, filepath.Join(t.Value, rel)) {
				if v := ruled(name); v < worst {
					worst, t.Also = v, []string{name}
				}
			}
			return worst != permission.Deny
		})
		t.Unsure = !whole && worst != permission.Deny
		if t.Unsure || worst != permission.Allow {
			targets = append(targets, t)
		}
	}
	return targets
}
