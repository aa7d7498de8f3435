package permission

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Grant is a rule that holds for a while in one session: a person allowed it there, or a skill lends it.
type Grant struct {
	Rule  string    `json:"rule"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"` // of a loan; never longer than what a person grants holds
	Skill string    `json:"skill,omitempty"`
	By    string    `json:"by,omitempty"` // who added it on a page; "": it was the answer to a question, or is a loan
	// Discards: it was allowed for commands that may discard content, and covers these as well
	Discards bool   `json:"discards,omitempty"`
	File     string `json:"-"` // that the rule was added to, since this process read it; "": it holds in one session only
}

const (
	// grantLife is how long a grant holds.
	grantLife = 24 * time.Hour

	// maxGrants is how many rules that persons granted are looked at, the newest: each is parsed for each call that
	// needs one.
	maxGrants = 200

	// MaxLoans is likewise how many rules a skill may lend.
	MaxLoans = 50
)

// lentBy begins the Decision.Origin of a rule that a skill lends.
const lentBy = "skill "

// OfSession says whether an Origin is that of a rule which holds in one session only.
func OfSession(origin string) bool { return origin == Granted || strings.HasPrefix(origin, lentBy) }

// Grantable returns why a rule can be neither granted nor lent; nil: it can.
func Grantable(text string) error {
	_, err := parseGrant(text, "rule of a session")
	return err
}

// parseGrant reads a rule that can be granted or lent. It knows no home and no root: the person whom it is shown to
// must see which files it is about.
func parseGrant(text, origin string) (rule, error) {
	r, err := parse(Rule{Text: text, Origin: origin}, "", Allow)
	if err == nil && r.path != nil && r.path.from == atRoots {
		err = fmt.Errorf("%s: rule %q: it names no root; write // for an absolute path", origin, text)
	}
	return r, err
}

// WithGrant returns the grants of a session with one that a person allowed now. Where there are too many, the oldest
// goes.
func WithGrant(all []Grant, now Grant) []Grant {
	own, lent := partGrants(all)
	own = slices.DeleteFunc(own, func(g Grant) bool { return g.Rule == now.Rule && g.Discards == now.Discards })
	own = append(own, now)
	return append(own[max(0, len(own)-maxGrants):], lent...)
}

// WithLoan returns the grants of a session with the rules that a skill lends from now on, in the place of those that an
// earlier one lent. What is over MaxLoans is left out.
func WithLoan(all []Grant, skill string, rules []string, now time.Time, life time.Duration) []Grant {
	own, _ := partGrants(all)
	for _, text := range rules[:min(len(rules), MaxLoans)] {
		own = append(own, Grant{Rule: text, At: now, Until: now.Add(life), Skill: skill})
	}
	return own
}

// Lent says whether any of the grants is a loan.
func Lent(all []Grant) bool { return slices.ContainsFunc(all, Grant.lent) }

// lent says whether a grant is a loan, by whatever one has: a person's holds much longer.
func (g Grant) lent() bool { return g.Skill != "" || !g.Until.IsZero() }

// partGrants parts what persons granted from what a skill lends.
func partGrants(all []Grant) (own, lent []Grant) {
	for _, g := range all {
		if g.lent() {
			lent = append(lent, g)
		} else {
			own = append(own, g)
		}
	}
	return own, lent
}

// Holding returns the grants that count at this time.
func Holding(all []Grant, now time.Time) (held []Grant) {
	for _, g := range all {
		if g.holds(now) {
			held = append(held, g)
		}
	}
	return held
}

// holds says whether a grant counts at this time.
func (g Grant) holds(now time.Time) bool {
	age := now.Sub(g.At)
	return age >= 0 && age <= grantLife && (!g.lent() || now.Before(g.Until))
}

func (g Grant) origin() string {
	switch {
	case g.File != "":
		return g.File
	case g.lent():
		return lentBy + g.Skill
	}
	return Granted
}

// granted returns the grants that hold now and may be about the call, which are parsed once. One that does not parse
// was not suggested by us, and allows nothing.
func (r *Request) granted() []rule {
	if r.parsed != nil {
		return *r.parsed
	}
	var rules []rule
	for _, g := range r.Grants[max(0, len(r.Grants)-maxGrants-2*MaxLoans):] {
		if !g.holds(r.Now) {
			continue
		}
		if name, _, _ := strings.Cut(g.Rule, "("); strings.HasPrefix(name, mountPrefix) && name != r.Tool &&
			!strings.HasPrefix(r.Tool, name) {
			continue
		}
		if parsed, err := parseGrant(g.Rule, g.origin()); err == nil {
			parsed.lent, parsed.discards = g.lent(), g.Discards && !g.lent()
			rules = append(rules, parsed)
		}
	}
	r.parsed = &rules
	return rules
}
