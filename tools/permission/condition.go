package permission

import (
	"path"
	"path/filepath"
)

// A Condition is one rule that stands alone: the `if` of a hook.
type Condition struct {
	rule rule
}

// Compile reads a rule. The error names its origin.
func Compile(r Rule, home string) (Condition, error) {
	parsed, err := parse(r, clean(home), Ask) // with Deny, one about reading were about changes, too
	return Condition{rule: parsed}, err
}

// Names says whether a rule with this text is about a tool of that name, whatever the call.
func (c Condition) Names(tool string, aliases []string, f Family) bool {
	return c.rule.names(tool, aliases, f)
}

// Matches says whether a rule with this text would match a call, as one that asks does: any target, any part of a
// command. `/x` of a rule that no project has starts from each of the roots (canonical). A relative pattern counts from
// every directory above a path: a hook that guards something must not be left out.
func (c Condition) Matches(r Request, roots []string) bool {
	p := (&Policy{made: true}).At(roots, "")
	p.complete(&r)
	rules := []rule{c.rule}
	if bareRule(rules, r.Tool, r.Aliases, r.Family) != nil {
		return true
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Path || c.rule.path == nil || c.rule.path.from != atCwd {
			continue
		}
		r.spellings(t, func(name string) bool {
			for dir := path.Dir(name); ; dir = path.Dir(dir) {
				p.roots = append(p.roots, dir)
				if dir == "/" || dir == "." || dir == filepath.VolumeName(dir) {
					return false
				}
			}
		})
	}
	return p.find(rules, &r).rule != nil
}
