package permission

import (
	"slices"
	"strings"

	"codehand/tools/bash"
)

// allowed is check 7.
func (p *Policy) allowed(r *Request) (Decision, bool) {
	granted := r.granted()
	if rule := p.allowingRule(r, granted); rule != nil {
		return Decision{Verdict: Allow, Rule: rule.Text, Origin: rule.Origin, Reason: "a rule allows it"}, true
	}
	if slices.Contains(r.Opinions, Allow) && dangerous(r) == "" {
		return allow("a hook allows it"), true
	}
	return Decision{}, false
}

// allowingRule returns a rule that allows the call; nil: there is none. All that the call touches itself must be
// covered, by one rule or by several; then the first is named.
func (p *Policy) allowingRule(r *Request, granted []rule) *rule {
	if len(p.allow)+len(granted) == 0 {
		return nil
	}
	if rule := p.allowsTool(r, granted); rule != nil {
		return rule
	}
	var first *rule
	own := false
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Use != ByCall {
			continue
		}
		own = true
		rule := p.allowsTarget(r, t, granted)
		if rule == nil {
			return nil
		}
		if first == nil {
			first = rule
		}
	}
	if !own {
		return nil
	}
	return first
}

// allowsTool returns a rule that allows every use of the tool. It never covers commands that are dangerous or could not
// be parsed.
func (p *Policy) allowsTool(r *Request, granted []rule) *rule {
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Kind == Command && (t.Analysis.Class == bash.Dangerous || t.Analysis.Unclear) {
			return nil
		}
	}
	if rule := bareRule(p.allow, r.Tool, r.Aliases, r.Family); rule != nil {
		return rule
	}
	return bareRule(granted, r.Tool, r.Aliases, r.Family)
}

func (p *Policy) allowsTarget(r *Request, t *Target, granted []rule) *rule {
	switch t.Kind {
	case Command:
		return p.allowsCommand(r, t, granted)
	case Path:
		return p.allowsPath(r, t, granted)
	}
	return pick(p.allow, granted, func(rule *rule) bool {
		if !rule.names(r.Tool, r.Aliases, r.Family) {
			return false
		}
		if t.Kind == Domain {
			return rule.host != nil && rule.host.match(plainHost(t.Value))
		}
		return rule.text != nil && takes[rule.name].what == aName && rule.text.match(t.Value)
	})
}

// pick returns the first rule of two lists that f chooses.
func pick(rules, more []rule, f func(*rule) bool) *rule {
	for i := range rules {
		if f(&rules[i]) {
			return &rules[i]
		}
	}
	for i := range more {
		if f(&more[i]) {
			return &more[i]
		}
	}
	return nil
}

// allowsPath returns the rule that covers the spelling of a path, if what it leads to is covered, too. What a command
// touches is covered by the families, whatever tool runs it.
func (p *Policy) allowsPath(r *Request, t *Target, granted []rule) *rule {
	if t.Real == "" {
		return nil
	}
	cwd := p.starts.cwd
	if cwd == "" {
		cwd = clean(r.Cwd)
	}
	change := r.changes(t)
	covering := func(path string) *rule {
		return pick(p.allow, granted, func(rule *rule) bool {
			switch {
			case !rule.about(change), t.Use == ByCall && !rule.names(r.Tool, r.Aliases, r.Family):
				return false
			case rule.bare():
				return t.Use != ByCall
			}
			return rule.path != nil && rule.path.allows(path, cwd, p.roots)
		})
	}
	rule := covering(clean(t.Value))
	if rule != nil && t.Real != t.Value && covering(clean(t.Real)) == nil {
		return nil
	}
	return rule
}

// allowsCommand returns a rule that is equal to the whole command, or the first of those that cover each of its parts
// which is not proved to be read-only. A rule with a star never covers commands that are dangerous, could not be parsed
// or may be more than they seem, and no change outside the roots that no other rule allows.
func (p *Policy) allowsCommand(r *Request, t *Target, granted []rule) *rule {
	if rule := allowsWhole(p, r, t, granted); rule != nil {
		return rule
	}
	a := t.Analysis
	discards := a.Class == bash.Dangerous && len(a.Losses()) > 0
	if a.Class == bash.Dangerous && !discards || a.Unclear || len(a.Parts) == 0 || p.writesOutside(r, granted) {
		return nil
	}
	// What changes something in a command of read-only parts is what stands around them.
	changes := func(part bash.Part) bool { return !part.Inner && part.Class != bash.ReadOnly }
	all := !slices.ContainsFunc(a.Parts, changes)
	var first *rule
	for i := range a.Parts {
		part := &a.Parts[i]
		if part.Inner || !all && part.Class == bash.ReadOnly {
			continue
		}
		if part.Exact || part.Class == bash.Dangerous {
			return nil
		}
		rule := pick(p.allow, granted, func(rule *rule) bool {
			return rule.ofCommand() && rule.text.match(part.Text) && rule.text.spells(part.Lead) &&
				rule.names(r.Tool, r.Aliases, r.Family) && (!discards || rule.discards)
		})
		if rule == nil {
			return nil
		}
		if first == nil {
			first = rule
		}
	}
	return first
}

// allowsWhole returns a rule without a star that is equal to a command. One that a skill lends covers nothing
// dangerous, since no person was ever offered it.
func allowsWhole(p *Policy, r *Request, t *Target, granted []rule) *rule {
	whole := strings.TrimSpace(t.Value)
	return pick(p.allow, granted, func(rule *rule) bool {
		return rule.ofCommand() && rule.text.exact() && rule.text.match(whole) &&
			rule.names(r.Tool, r.Aliases, r.Family) && !(rule.lent && t.Analysis.Class == bash.Dangerous)
	})
}

// forbidsCommands returns the first rule that denies or asks and is about some commands; nil: there is none.
func forbidsCommands(p *Policy) *rule {
	return pick(p.deny, p.ask, func(r *rule) bool { return r.ofCommand() })
}

// writesOutside says whether a command of the call is known to change a file outside the roots that no rule allows it
// to.
func (p *Policy) writesOutside(r *Request, granted []rule) bool {
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Use == CommandWrites && !t.Inside && t.Value != bash.NullDevice && p.allowsPath(r, t, granted) == nil {
			return true
		}
	}
	return false
}

// readsOutside returns a file outside the roots that a command of the call is known to read, and that no rule allows it
// to; "": there is none.
func (p *Policy) readsOutside(r *Request) string {
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Use != CommandReads || t.Inside || t.Value == bash.NullDevice {
			continue
		}
		if p.allowsPath(r, t, r.granted()) == nil {
			return t.Value
		}
	}
	return ""
}

// editsInside says whether the call is a command of which each part is proved to be read-only or a simple change of
// files inside the roots, and nothing else.
func (p *Policy) editsInside(r *Request) bool {
	if !kindsOf(r.Targets).onlyCommand() {
		return false
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind == Path && !t.Inside && t.Value != bash.NullDevice {
			return false
		}
		if t.Kind != Command {
			continue
		}
		a := t.Analysis
		if a.Class != bash.Writes || a.Unclear {
			return false
		}
		for j := range a.Parts {
			if !p.isEdit(r, &a.Parts[j]) {
				return false
			}
		}
	}
	return true
}

// isEdit says whether one part only reads or only changes files that are known to be inside the roots.
func (p *Policy) isEdit(r *Request, part *bash.Part) bool {
	if part.Exact {
		return false
	}
	if part.Class == bash.ReadOnly {
		return true
	}
	for _, edited := range part.Edits {
		if !slices.ContainsFunc(r.Targets, func(t Target) bool {
			return t.Kind == Path && t.Use == CommandWrites && t.Inside && t.Value == p.absolute(r, edited)
		}) {
			return false
		}
	}
	return len(part.Edits) > 0 && part.Class == bash.Writes
}
