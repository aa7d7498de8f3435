package permission

import (
	"path/filepath"
	"slices"
)

// Decide returns the one decision about a call. It is pure. The first check that decides wins: a deny rule for the
// tool, a hook's deny, a deny rule for a target, what a person must decide, bypass, a hook's allow, the mode.
func (p *Policy) Decide(r Request) Decision {
	if p == nil || !p.made {
		return deny("there is no permission policy")
	}
	if rule := p.off(r.Tool, r.Aliases); rule != nil {
		return Decision{Off: true, Rule: rule.Text, Origin: rule.Origin, Reason: "a rule switches this tool off"}
	}
	if slices.ContainsFunc(r.Opinions, func(v Verdict) bool { return v != Ask && v != Allow }) {
		return deny("a hook denies it")
	}
	if d, denied := p.denied(r); denied {
		return d
	}
	if r.Own == Ask || slices.Contains(r.Opinions, Ask) {
		return hardAsk(r)
	}
	switch {
	case r.Mode < Default || r.Mode > Bypass:
		return deny("the session's mode is unknown")
	case r.Mode == Bypass:
		return allow("mode bypassPermissions asks nobody")
	case r.Mode == Plan && !r.ReadOnly && !r.Private && !r.PlanFile:
		return deny("mode plan allows changes of the plan file only")
	case slices.Contains(r.Opinions, Allow):
		return allow("a hook allows it")
	}
	return byMode(r)
}

// denied looks for what no person is asked about: a target that a rule denies, a target that nothing is known about,
// a refusal of the tool itself.
func (p *Policy) denied(r Request) (Decision, bool) {
	for _, t := range r.Targets {
		switch t.Kind {
		case Path:
			if d, denied := p.deniedTarget(r, t); denied {
				return d, true
			}
		case Command, Domain, Name:
		default:
			return deny("a target of the call has no kind"), true
		}
	}
	if r.Own != Ask && r.Own != Allow {
		return deny("the tool refuses this input"), true
	}
	return Decision{}, false
}

// deniedTarget matches both the spelling of a path and what it leads to. The reason names the spelling only: where a
// link leads is not for whoever may not follow it.
func (p *Policy) deniedTarget(r Request, t Target) (Decision, bool) {
	cwd := clean(r.Cwd)
	spelt := t.Value
	if !filepath.IsAbs(spelt) {
		spelt = filepath.Join(r.Cwd, spelt) // a spelling that no tool opens; judged all the same
	}
	for i, path := range [...]string{clean(spelt), clean(t.Real)} {
		if path == "" || i == 1 && t.Real == spelt {
			continue
		}
		if rule := p.secret(path); rule != "" {
			return Decision{Rule: rule, Origin: BuiltIn, Reason: "secrets are closed to every tool"}, true
		}
		if rule := p.deniedPath(path, cwd, r.ReadOnly); rule != nil {
			return Decision{Rule: rule.Text, Origin: rule.Origin, Reason: "a rule denies " + t.Value}, true
		}
	}
	return Decision{}, false
}

// byMode is the table of modes for what no rule and no hook decided. Bypass never comes here.
//
//	                        Default  Plan       AcceptEdits  DontAsk
//	session's own memory    allow    allow      allow        allow
//	reading                 allow    allow      allow        allow
//	network                 ask      ask        ask          deny
//	change in the roots     ask      plan file  allow        deny
//	anything else           ask      deny       ask          deny
//
// Reading outside the roots is not asked about: workspace opens its own readable areas and refuses the rest.
func byMode(r Request) Decision {
	switch network := has(r.Targets, Domain); {
	case r.Private:
		return allow("it touches the session's own memory only")
	case r.ReadOnly && !network:
		return allow("it changes nothing")
	case r.Mode == Plan && r.PlanFile:
		return allow("it changes the plan file only")
	case r.Mode == AcceptEdits && insideRoots(r.Targets):
		return allow("mode acceptEdits allows changes inside the roots")
	case r.Mode == DontAsk:
		return deny("mode dontAsk denies what a person would be asked about")
	case network:
		return Decision{Verdict: Ask, Reason: "it reaches the network"}
	}
	return Decision{Verdict: Ask, Reason: "mode " + r.Mode.String() + " asks before this"}
}

// insideRoots says whether the call is known to touch files inside the roots and nothing else.
func insideRoots(targets []Target) bool {
	for _, t := range targets {
		if t.Kind != Path || !t.Inside {
			return false
		}
	}
	return len(targets) > 0
}

func has(targets []Target, k Kind) bool {
	return slices.ContainsFunc(targets, func(t Target) bool { return t.Kind == k })
}

func hardAsk(r Request) Decision {
	if r.Mode == DontAsk {
		return deny("a person would have to allow it, and mode dontAsk asks nobody")
	}
	return Decision{Verdict: Ask, Hard: true, Reason: "a person must allow it"}
}

func deny(reason string) Decision { return Decision{Reason: reason} }

func allow(reason string) Decision { return Decision{Verdict: Allow, Reason: reason} }
