package permission

import (
	"cmp"
	"slices"

	"codehand/tools/bash"
)

// Decide returns the one decision about a call. It is pure. The first check that decides wins:
//
//  1. a deny rule for the tool
//  2. a hook's deny
//  3. a deny rule for a path, a sub-command, a host, a name or a parameter; what no person may allow
//  4. a protected name, or a removal of what everything hangs on: a person decides, in every mode
//  5. an ask rule, a hook's or the tool's ask, a command that nothing can explain, or that may reach what a rule about
//     paths covers: likewise
//  6. mode bypassPermissions
//  7. an allow rule, a grant of the session, a hook's allow
//  8. the mode, the operator's classifier, a sandbox in place of a question
//  9. else a person is asked, or the client's own dialog; for what is dangerous a person, where one can be asked
//
// A rule that denies or asks is compared with every spelling that is known, one that allows must cover all of them.
func (p *Policy) Decide(r Request) Decision {
	if p == nil || !p.made {
		return deny("there is no permission policy")
	}
	p.complete(&r)
	if rule := bareRule(p.deny, r.Tool, r.Aliases, r.Family); rule != nil {
		return Decision{Off: true, Rule: rule.Text, Origin: rule.Origin, Reason: "a rule switches this tool off"}
	}
	if slices.ContainsFunc(r.Opinions, func(v Verdict) bool { return v != Ask && v != Allow }) {
		return deny("a hook denies it")
	}
	if d, denied := p.denied(&r); denied {
		return d
	}
	if d, asks := p.asked(&r); asks {
		if r.Mode == DontAsk {
			d.Verdict, d.Hard, d.Reason = Deny, false,
				"a person must approve it, but mode dontAsk never asks: "+d.Reason
		}
		return d
	}
	if r.Mode == Bypass {
		return allow("mode bypassPermissions never asks")
	}
	if d, ok := p.allowed(&r); ok {
		return d
	}
	return p.byMode(&r)
}

// denied is check 3: what no person is asked about. What the mode or the operator's classifier denies stands here, too:
// an ask rule must not turn it into a question.
func (p *Policy) denied(r *Request) (Decision, bool) {
	for i := range r.Targets {
		if kind := r.Targets[i].Kind; kind <= NoKind || kind > Name {
			return deny("a target of the call has no kind"), true
		}
	}
	if d, denied := p.closed(r); denied {
		return d, true
	}
	if found := p.find(p.deny, r); found.rule != nil {
		return Decision{Rule: found.rule.Text, Origin: found.rule.Origin, About: found.about,
			Reason: "a rule denies " + found.about}, true
	}
	switch {
	case r.Own != Ask && r.Own != Allow:
		return deny("the tool refuses this input"), true
	case r.Mode < Default || r.Mode > Auto:
		return deny("the session's mode is unknown"), true
	case r.Mode == Plan && !r.ReadOnly && !r.Private && !r.PlanFile:
		return deny("in plan mode only the plan file can be changed"), true
	case r.Mode == Auto && slices.ContainsFunc(r.Judged, func(v Verdict) bool { return v != Ask && v != Allow }):
		return deny("the operator's classifier denies it"), true
	}
	return Decision{}, false
}

// asked is checks 4 and 5: what a person must decide. A client's own dialog is not enough.
func (p *Policy) asked(r *Request) (Decision, bool) {
	if d, asks := p.guarded(r); asks {
		return d, true
	}
	if rule := bareRule(p.ask, r.Tool, r.Aliases, r.Family); rule != nil {
		return Decision{Verdict: Ask, Hard: true, Rule: rule.Text, Origin: rule.Origin,
			Reason: "a rule requires approval for this tool"}, true
	}
	if found := p.find(p.ask, r); found.rule != nil {
		return Decision{
			Verdict: Ask, Hard: true, Rule: found.rule.Text, Origin: found.rule.Origin, About: found.about,
			Reason: "a rule requires approval for " + found.about,
		}, true
	}
	if d, asks := p.secretAsked(r); asks {
		return d, true
	}
	if d, asks := p.unsure(r); asks {
		return d, true
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Command {
			continue
		}
		if d, asks := unread(p, r, t); asks {
			return d, true
		}
		if d, asks := perhapsRuns(p, r, t); asks {
			return d, true
		}
	}
	if r.Own == Ask || slices.Contains(r.Opinions, Ask) {
		return Decision{Verdict: Ask, Hard: true, Reason: MustApprove}, true
	}
	return Decision{}, false
}

// MustApprove is the reason of a question that the tool itself, or a hook, wants.
const MustApprove = "a person must approve it"

// unread finds a command whose text does not tell which commands it runs. That is a question only if a rule about
// commands could be evaded by it: a script that is run tells no more.
func unread(p *Policy, r *Request, t *Target) (d Decision, asks bool) {
	a := t.Analysis
	why := cmp.Or(a.Hidden, a.Person, a.Overlong(t.Value))
	ruled := forbidsCommands(p)
	if why == "" || ruled == nil || allowsWhole(p, r, t, r.granted()) != nil {
		return d, false
	}
	d.Verdict, d.Hard, d.About = Ask, true, t.Value
	d.Reason = "rule " + ruled.Text + ", " + ruled.Origin + ", forbids commands, and this one may run others: " + why
	return d, true
}

// held says that the kernel holds what the call runs.
func held(r *Request) bool {
	return slices.ContainsFunc(r.Targets, func(t Target) bool { return t.Kind == Command && t.Analysis.Held })
}

// unsure finds a target that may touch a file with a rule of path patterns, where neither the text of the command nor
// the disk can tell.
func (p *Policy) unsure(r *Request) (Decision, bool) {
	if held(r) { // the kernel keeps what rules deny; those that ask hold for what the command names
		return perhapsRuled(p, r, p.ask)
	}
	if d, asks := unsureFile(p, r); asks {
		return d, true
	}
	reads, changes := p.Compares(false), p.Compares(true)
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Command {
			continue
		}
		switch a := t.Analysis; {
		case reads && a.UnsureReads != "":
			return Decision{Verdict: Ask, Hard: true, About: t.Value,
				Reason: "it may read a file that a rule covers: " + a.UnsureReads}, true
		case changes && a.UnsureWrites != "":
			return Decision{Verdict: Ask, Hard: true, About: t.Value,
				Reason: "it may change a file that a rule covers: " + a.UnsureWrites}, true
		}
	}
	return perhapsRuled(p, r, p.deny, p.ask)
}

// perhapsRuled finds one of the rules with a pattern about a file that a command names to a program with unknown
// effects.
func perhapsRuled(p *Policy, r *Request, all ...[]rule) (Decision, bool) {
	cwd := clean(r.Cwd)
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind != Path || t.Use != CommandPerhaps {
			continue
		}
		for _, rules := range all {
			if rule := p.findPath(rules, r, t, cwd); rule != nil {
				return Decision{Verdict: Ask, Hard: true, Rule: rule.Text, Origin: rule.Origin, About: t.Value,
					Reason: "a rule covers " + t.Value + ", and the command may use it"}, true
			}
		}
	}
	return Decision{}, false
}

// perhapsRuns finds a rule about a command that stands among the words of a program that may run them, or that a
// command with words which only the shell knows may be.
func perhapsRuns(p *Policy, r *Request, t *Target) (Decision, bool) {
	for _, part := range t.Analysis.Parts {
		for _, text := range part.Perhaps {
			is := func(rule rule) bool {
				return rule.ofCommand() && rule.names(r.Tool, r.Aliases, r.Family) && rule.text.match(text)
			}
			if slices.ContainsFunc(p.deny, is) || slices.ContainsFunc(p.ask, is) {
				why := "a rule is about " + text + ", and the command may run it"
				d := Decision{Verdict: Ask, Hard: true, About: t.Value, Reason: why}
				return d, allowsWhole(p, r, t, r.granted()) == nil
			}
		}
		rule := pick(p.deny, p.ask, func(rule *rule) bool {
			return len(part.Open) > 0 && rule.ofCommand() && rule.names(r.Tool, r.Aliases, r.Family) &&
				slices.ContainsFunc(part.Open, rule.text.meets)
		})
		if rule != nil && allowsWhole(p, r, t, r.granted()) == nil {
			return Decision{Verdict: Ask, Hard: true, About: t.Value, Reason: "rule " + rule.Text + ", " + rule.Origin +
				", is about commands that this one may be: what it runs is put together when it runs"}, true
		}
	}
	return Decision{}, false
}

// unsureFile finds a file that may have a name with a rule or a protected name, where not all of its names could be
// looked up; or a place in which there may be such a file. Names of secrets are no reason to ask before each reading:
// in a tree too large to walk, most files with several names come from a store of packages.
func unsureFile(p *Policy, r *Request) (Decision, bool) {
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Kind == Path && t.Unsure && t.Use != CommandPerhaps &&
			(r.changes(t) && !r.PlanFile || p.Compares(r.changes(t))) {
			return Decision{
				Verdict: Ask, Hard: true, About: t.Value,
				Reason: "it may reach a file that a rule covers: not all files and names there could be checked",
			}, true
		}
	}
	return Decision{}, false
}

// byMode is checks 8 and 9: the table of modes for what no rule and no hook decided. Bypass never comes here.
//
//	                          Default  Plan       AcceptEdits  Auto        DontAsk
//	session's own memory      allow    allow      allow        allow       allow
//	reading                   allow    allow      allow        allow       allow
//	network                   ask      ask        ask          classifier  deny
//	change in the roots       ask      plan file  allow        allow       deny
//	command that edits there  ask      deny       allow        classifier  deny
//	anything else             ask      deny       ask          classifier  deny
//
// Reading outside the roots is not asked about, because workspace opens its own readable areas and refuses the rest;
// except what a command reads there.
func (p *Policy) byMode(r *Request) Decision {
	has := kindsOf(r.Targets)
	harm := dangerous(r)
	outside := ""
	if r.ReadOnly && has.command && !held(r) { // the kernel shows such a command what it may read
		outside = p.readsOutside(r)
	}
	switch {
	case r.Private:
		return allow("it touches the session's own memory only")
	case r.ReadOnly && !has.domain && outside == "" && proved(r):
		return allow("it changes nothing")
	case r.Mode == Plan && r.PlanFile:
		return allow("it changes the plan file only")
	case (r.Mode == AcceptEdits || r.Mode == Auto) && !has.command && insideRoots(r.Targets):
		return allow("the mode allows changes inside the roots")
	case r.Mode == AcceptEdits && p.editsInside(r):
		return allow("mode acceptEdits allows simple commands on files inside the roots")
	case r.Mode == Auto && harm == "" && slices.Contains(r.Judged, Allow) && !slices.Contains(r.Judged, Ask):
		return allow("the operator's classifier allows it")
	case r.Confined && r.Mode != Plan && harm == "" && has.onlyCommand():
		return allow("the sandbox confines it")
	case r.Mode == DontAsk:
		return deny("mode dontAsk denies everything that needs approval")
	case harm != "":
		return Decision{Verdict: Ask, Dangerous: true, Reason: "the command is dangerous: " + harm}
	case outside != "":
		return Decision{Verdict: Ask, About: outside, Reason: "it reads " + outside + ", outside the roots"}
	case has.domain:
		return Decision{Verdict: Ask, Reason: "it reaches the network"}
	}
	return Decision{Verdict: Ask, Reason: "mode " + r.Mode.String() + " asks before this"}
}

// dangerous says what makes a command of the call dangerous; "": nothing. Class Dangerous is a decision of its own:
// mode bypassPermissions and a rule that is equal to the whole command allow it, modes plan and dontAsk deny it, and
// else a person decides. No sandbox, no classifier, no hook and no rule with a star covers it.
func dangerous(r *Request) string {
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Kind == Command && t.Analysis.Class == bash.Dangerous {
			return t.Analysis.Reason()
		}
	}
	return ""
}

// proved says that every command of the call is proved to be read-only.
func proved(r *Request) bool {
	for i := range r.Targets {
		if t := &r.Targets[i]; t.Kind == Command && t.Analysis.Class != bash.ReadOnly {
			return false
		}
	}
	return true
}

// kinds says what a call touches itself, apart from what its commands touch.
type kinds struct{ path, command, domain, name bool }

func kindsOf(targets []Target) (k kinds) {
	for i := range targets {
		switch t := &targets[i]; t.Kind {
		case Path:
			k.path = k.path || t.Use == ByCall
		case Command:
			k.command = true
		case Domain:
			k.domain = true
		case Name:
			k.name = true
		}
	}
	return k
}

func (k kinds) onlyCommand() bool { return k == kinds{command: true} }

// insideRoots says whether the call is known to touch files inside the roots and nothing else.
func insideRoots(targets []Target) bool {
	for i := range targets {
		if t := &targets[i]; t.Kind != Path || !t.Inside {
			return false
		}
	}
	return len(targets) > 0
}

func deny(reason string) Decision { return Decision{Reason: reason} }

func allow(reason string) Decision { return Decision{Verdict: Allow, Reason: reason} }
