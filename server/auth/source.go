package auth

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Source knows tokens that are in no tokens file. It is safe for concurrent use.
type Source interface {
	// Find says what a token stands for. ok is false if the token does not have the form of this source's tokens: the
	// next source is asked. The error is an *Error, with ok true.
	Find(text string, now time.Time) (f Found, ok bool, err error)
	// Valid says whether what who.Via names still holds; mine is false if Via is not of this source. Whether the
	// operator changed the rights meanwhile is not the source's business.
	Valid(who Principal) (valid, mine bool)
}

// A scoper is a Source whose tokens have scopes under other names than ours, or cannot get more of them.
type scoper interface {
	// Ask returns the scopes that a client has to ask for to get want, with spaces between; "": it cannot get them.
	// mine is false if who.Via is not of this source.
	Ask(who Principal, want Scopes) (scopes string, mine bool)
}

// Found is what a token of a Source stands for. A Found never gives more than the operator gives its principal.
type Found struct {
	ID     string   // the principal
	Values Values   // Roots, Mode, MaxMode, Profile, Scopes and Deny narrow those of the principal; the rest is ignored
	Groups []string // of the principal; what the operator says of them comes before what he says of all; may be nil
	Via    string   // becomes Principal.Via: "oauth:<grant>", "oidc:<name>"
	Token  string   // tells tokens of one Via apart, for Source.Valid; no secret; "": nothing does
}

// brought is the token of a Source that a principal came with. It is never changed.
type brought struct {
	found Found
	told  uint64 // rights.told when it was resolved
}

// rights are what the operator says about principals. They are safe for concurrent use.
type rights struct {
	workspaces string // as in Options

	mu      sync.RWMutex // covers what follows
	told    uint64       // how often the operator said something
	named   map[string]Values
	general Values
	groups  []Group
}

// foreign makes the principal of a token of a Source.
func (p *rights) foreign(f *Found) (Principal, error) {
	who, enabled := p.narrowed(f)
	switch {
	case CheckID(f.ID) != nil:
		return Principal{}, NotAccepted(f.Via + " names no principal")
	case !enabled:
		return Principal{}, disabled(f.Via)
	case len(f.Values.Roots) > 0 && len(who.Roots) == 0:
		return Principal{}, NotAccepted(f.Via + " is for roots that its principal has no more")
	}
	return who, nil
}

// unchanged says whether a principal that came with a token of a Source still has the rights that it came with.
func (p *rights) unchanged(who Principal) bool {
	if who.brought == nil {
		return false
	}
	p.mu.RLock()
	same := p.told == who.brought.told
	p.mu.RUnlock()
	if same {
		return true
	}
	now, err := p.foreign(&who.brought.found)
	return err == nil && now.sameRights(who)
}

// narrowed is what the operator gives the principal of f, narrowed by what f says.
func (p *rights) narrowed(f *Found) (who Principal, enabled bool) {
	p.mu.RLock()
	sources := slices.Concat([]Values{p.named[f.ID]}, ofGroups(p.groups, f.Groups), []Values{p.general})
	told := p.told
	p.mu.RUnlock()
	who, enabled = Resolve(f.ID, p.workspaces, sources...)
	who.Via, who.brought = f.Via, &brought{*f, told}
	v := f.Values
	if len(v.Roots) > 0 {
		who.Whole = who.Roots
		who.Roots = remaining(who.Whole, v.Roots)
	}
	if v.MaxMode != nil && modes[*v.MaxMode] < modes[who.MaxMode] {
		who.MaxMode = *v.MaxMode
	}
	if v.Mode != nil && modes[*v.Mode] < modes[who.Mode] {
		who.Mode = *v.Mode
	}
	if modes[who.Mode] > modes[who.MaxMode] {
		who.Mode = who.MaxMode
	}
	if v.Profile != nil && *v.Profile != defaultProfile {
		who.Profile = *v.Profile
	}
	for _, rule := range v.Deny {
		if !slices.Contains(who.Deny, rule) {
			who.Deny = append(who.Deny, rule)
		}
	}
	if v.Scopes != nil {
		scopes, err := ParseScopes(v.Scopes)
		if err != nil {
			scopes = 0
		}
		who.Scopes &= scopes
		who.Admin = who.Scopes.Has(AdminConsole)
	}
	return who, enabled
}

// remaining are those of a token's roots that are in the roots of its principal, in the order of the latter: a session
// begins in the first one. No root was a link when the token was made. One that leads elsewhere now was exchanged
// since, and is left out.
func remaining(whole, roots []string) []string {
	var all []string
	for _, mine := range whole {
		for _, r := range roots {
			if !slices.Contains(all, r) && Real(r) == r && (within(r, mine) || within(r, Real(mine))) {
				all = append(all, r)
			}
		}
	}
	return all
}

// Reaches says whether p may work in the directories that its roots led to when they were opened. They have no links.
// It is false if one was exchanged for a link out of the principal's roots, after its token was looked at.
func (p Principal) Reaches(opened []string) bool {
	if p.brought == nil || p.Whole == nil {
		return true
	}
	for _, dir := range opened {
		if !slices.ContainsFunc(p.Whole, func(mine string) bool { return within(dir, Real(mine)) }) {
			return false
		}
	}
	return true
}

// Token is what Found.Token said of the token that p came with; "": nothing.
func (p Principal) Token() string {
	if p.brought == nil {
		return ""
	}
	return p.brought.found.Token
}

// A Pass says who sent a request to one of several nodes, so that another one knows it again. It holds no secret.
type Pass struct {
	ID    string
	Via   string // as Principal.Via
	Found *Found // nil: a token of the tokens file
}

// Pass is that of a principal that was authenticated.
func (p Principal) Pass() Pass {
	x := Pass{ID: p.ID, Via: p.Via}
	if p.brought != nil {
		x.Found = &p.brought.found
	}
	return x
}

// Know returns the principal of a pass with the rights that it has here: what it came with must hold here, too. The
// error is an *Error.
func (p *Porter) Know(x Pass) (Principal, error) {
	who := Principal{ID: x.ID, Via: x.Via}
	switch id, file := strings.CutPrefix(x.Via, via); {
	case p.o.Mode == ModeNone:
		return Principal{}, NotAccepted("nobody signs in here")
	case x.Found != nil:
		var err error
		if who, err = p.foreign(x.Found); err != nil {
			return Principal{}, err
		}
	case file:
		p.mu.RLock()
		h := p.held[id]
		p.mu.RUnlock()
		if h == nil {
			return Principal{}, NotAccepted("token " + id + " is not known to this node")
		}
		p.uses.note(id, p.o.Now())
		who = h.principal.clone()
	}
	if who.ID != x.ID || who.Via != x.Via || !p.Valid(who) {
		return Principal{}, NotAccepted("what another node let in does not hold here: " + x.Via)
	}
	return who, nil
}

// Named are the principals that the operator names, in no order.
func (p *Porter) Named() []string {
	p.rights.mu.RLock()
	defer p.rights.mu.RUnlock()
	return slices.Collect(maps.Keys(p.named))
}

// Rights is what the operator gives a principal, whatever it comes with; ok is false if it may not sign in at all.
func (p *Porter) Rights(id string) (who Principal, ok bool) {
	if p.o.Mode == ModeNone || CheckID(id) != nil {
		return Principal{}, false
	}
	return p.rights.narrowed(&Found{ID: id})
}
