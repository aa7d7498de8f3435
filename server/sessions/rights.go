package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/server/tenants"
	"codehand/tools/permission"
	"codehand/tools/session"
)

// Rights are what a session in use may do, as far as a person may change that while it is connected.
type Rights struct {
	Key    session.Key
	Mode   string   // in force
	Chosen string   // the mode that a person set; "": none, so those of the operator hold
	Usual  string   // in which the operator has it start
	Modes  []string // that a person may set: no operator's limit is below them; the strictest first
	Rules  []HeldRule
}

// A HeldRule is one that holds in a session besides those of the settings.
type HeldRule struct {
	NamedRule
	By    string // who set it on a page; "": a person allowed it when a call asked, or Skill lends it
	Skill string // that lends it; "": a person set it
	Since time.Time
}

// A NamedRule is a rule of a session, as a person names it.
type NamedRule struct {
	List string // what it does: one of Lists
	Rule string
}

// Lists are what a rule that a person sets for a session may do, the strictest first.
var Lists = []string{denies, asks, allows}

const (
	denies = "deny"
	asks   = "ask"
	allows = "allow"
)

var (
	// ErrNotOpen says that no session of that name is in use, or none that has that rule: its next call opens it.
	ErrNotOpen = errors.New("this session is not in use, or does not have that rule")
	// ErrMode says that a mode is none of Rights.Modes, or a list none of Lists.
	ErrMode = errors.New("this is not one of what the operator allows here")
)

// A RuleError says why a rule cannot be set, in words for the person who wrote it.
type RuleError struct{ Text string }

func (e *RuleError) Error() string { return e.Text }

// offered are the modes that people may set, the strictest first. Auto needs a classifier, so only a session that
// starts in it has it.
var offered = []permission.Mode{permission.Plan, permission.DontAsk, permission.Default, permission.AcceptEdits,
	permission.Auto, permission.Bypass}

// A held session is one in use.
type heldSession struct {
	*session.State
	at *tenants.Tenant
}

// heldBy are the sessions in use, one for each key: that of the tenant which may do most.
func (t *Table) heldBy(of func(session.Key) bool) (all []heldSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := map[session.Key]heldSession{}
	for at, l := range t.live {
		if !of(at.key) {
			continue
		}
		known, ok := most[at.key]
		if !ok || known.Highest.AtMost(l.state.Highest) == known.Highest {
			most[at.key] = heldSession{l.state, at.at}
		}
	}
	for _, st := range most {
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b heldSession) int {
		return cmp.Or(strings.Compare(a.Key.Principal, b.Key.Principal), strings.Compare(a.Key.Session, b.Key.Session))
	})
	return all
}

// Rights returns those of the sessions in use.
func (t *Table) Rights(ctx context.Context, of func(session.Key) bool) (all []Rights, err error) {
	now := time.Now()
	for _, st := range t.heldBy(of) {
		var mode permission.Mode
		var grants []permission.Grant
		limit, err := st.Limit.Load(ctx)
		if err == nil {
			mode, _, err = st.InForce(ctx, now)
		}
		if err == nil && !st.Shared { // else a grant counts for nothing
			grants, err = st.Grants.Load(ctx)
		}
		if err != nil {
			return nil, err
		}
		r := Rights{Key: st.Key, Mode: mode.String(), Chosen: limit.Mode, Usual: st.Start.String(),
			Modes: modesOf(st.State)}
		for _, x := range limit.Rules {
			r.Rules = append(r.Rules, HeldRule{NamedRule{listOf(x), x.Rule}, x.By, "", x.At})
		}
		for _, g := range permission.Holding(grants, now) {
			r.Rules = append(r.Rules, HeldRule{NamedRule{allows, g.Rule}, g.By, g.Skill, g.At})
		}
		all = append(all, r)
	}
	return all, nil
}

func modesOf(st *session.State) (all []string) {
	for _, m := range offered {
		if m.AtMost(st.Highest) == m && (m != permission.Auto || st.Start == m) {
			all = append(all, m.String())
		}
	}
	return all
}

func listOf(r session.SetRule) string {
	if r.Asks {
		return asks
	}
	return denies
}

// SetMode sets the mode in which sessions in use work from their next call on, and above which they never go; "" gives
// them back to the operator's settings.
func (t *Table) SetMode(ctx context.Context, of func(session.Key) bool, mode string) error {
	all := t.heldBy(of)
	if len(all) == 0 {
		return ErrNotOpen
	}
	for _, st := range all {
		if mode != "" && !slices.Contains(modesOf(st.State), mode) {
			return ErrMode
		}
	}
	for _, st := range all {
		// The limit comes first: whatever fails then, the session goes no higher than it.
		said := "gave the mode of this session back to the operator's settings: it is " + st.Start.String()
		if mode != "" {
			said = "set the mode of this session to " + mode + "; it does not go above that"
		}
		err := limited(ctx, st.State, said, func(l *session.Limit) error { l.Mode = mode; return nil })
		if err == nil {
			_, err = st.Plan.Change(ctx, func(p session.Plan) (session.Plan, error) { p.Left = false; return p, nil })
		}
		if err == nil { // what was set before counts no more
			_, err = st.Mode.Change(ctx,
				func(permission.Mode) (permission.Mode, error) { return permission.Default, nil })
		}
		if err != nil {
			return fmt.Errorf("set the mode of a session: %w", err)
		}
	}
	return nil
}

const (
	// mostRules is how many rules that deny or ask a person may set for a session: each is parsed for each call.
	mostRules = 100
	// longestRule is how many bytes one has.
	longestRule = 1_000
)

// AddRule sets a rule for sessions in use, from their next call on: one that denies or asks until it is taken back, one
// that allows as long as what a person allows when a call asks. It allows nothing that the settings deny or ask about.
// by is the principal who sets it. A *RuleError says why it cannot be set.
func (t *Table) AddRule(ctx context.Context, of func(session.Key) bool, r NamedRule, by string) error {
	all := t.heldBy(of)
	if len(all) == 0 {
		return ErrNotOpen
	}
	if !slices.Contains(Lists, r.List) {
		return ErrMode
	}
	for _, st := range all {
		if err := t.settable(st, r); err != nil {
			return &RuleError{err.Error()}
		}
	}
	for _, st := range all {
		if err := setRule(ctx, st.State, r, by); err != nil {
			return err
		}
	}
	return nil
}

// settable says why a session may not have a rule.
func (t *Table) settable(st heldSession, r NamedRule) error {
	switch {
	case len(r.Rule) > longestRule:
		return fmt.Errorf("a rule has %d bytes at most", longestRule)
	case r.List != allows:
	case st.Shared:
		return errors.New("several conversations share this session, and a rule that allows is for one of them")
	case st.Prefs.ManagedRules:
		return errors.New("permissions.managed_rules_only is set: the administrator of this machine alone makes " +
			"rules that allow")
	}
	return t.Check(st.at, r.List, permission.Rule{Text: r.Rule, Origin: "this page"})
}

func setRule(ctx context.Context, st *session.State, r NamedRule, by string) (err error) {
	now := time.Now()
	if r.List == allows {
		_, err = st.Grants.Change(ctx, func(all []permission.Grant) ([]permission.Grant, error) {
			return permission.WithGrant(all, permission.Grant{Rule: r.Rule, At: now, By: by}), nil
		})
	}
	if err == nil {
		err = limited(ctx, st, "set a rule for this session: "+r.List+" "+r.Rule, func(l *session.Limit) error {
			if r.List == allows {
				return nil
			}
			others := without(l.Rules, r)
			if len(others) >= mostRules {
				return &RuleError{fmt.Sprintf("a session has %d rules at most: take one back first", mostRules)}
			}
			l.Rules = append(others, session.SetRule{Rule: r.Rule, Asks: r.List == asks, At: now, By: by})
			return nil
		})
	}
	if wrong, ok := errors.AsType[*RuleError](err); ok {
		return wrong
	}
	if err != nil {
		return fmt.Errorf("set a rule of a session: %w", err)
	}
	return nil
}

// without returns the rules that are not r, in a slice of its own.
func without(all []session.SetRule, r NamedRule) (left []session.SetRule) {
	for _, x := range all {
		if x.Rule != r.Rule || listOf(x) != r.List {
			left = append(left, x)
		}
	}
	return left
}

// TakeBack ends a rule of sessions in use, from their next call on. ErrNotOpen: none has it.
func (t *Table) TakeBack(ctx context.Context, of func(session.Key) bool, r NamedRule) error {
	found := false
	for _, st := range t.heldBy(of) {
		had := false
		var err error
		if r.List == allows {
			_, err = st.Grants.Change(ctx, func(all []permission.Grant) ([]permission.Grant, error) {
				n := len(all)
				all = slices.DeleteFunc(all, func(g permission.Grant) bool { return g.Rule == r.Rule })
				had = len(all) < n
				return all, nil
			})
		} else {
			_, err = st.Limit.Change(ctx, func(l session.Limit) (session.Limit, error) {
				left := without(l.Rules, r)
				had, l.Rules = len(left) < len(l.Rules), left
				return l, nil
			})
		}
		if err == nil && had {
			found = true
			said := "took back a rule of this session: " + r.List + " " + r.Rule
			err = limited(ctx, st.State, said, func(*session.Limit) error { return nil })
		}
		if err != nil {
			return fmt.Errorf("take back a rule of a session: %w", err)
		}
	}
	if !found {
		return ErrNotOpen
	}
	return nil
}

// mostNews is how many lines wait to be told; the oldest goes.
const mostNews = 8

// limited changes what a person has set for a session, which is told of it with its next result. An error of change
// comes back wrapped, and nothing is changed.
func limited(ctx context.Context, st *session.State, said string, change func(*session.Limit) error) error {
	_, err := st.Limit.Change(ctx, func(l session.Limit) (session.Limit, error) {
		if err := change(&l); err != nil {
			return l, err
		}
		l.News = append(l.News, "[on the page the user "+said+"]")
		l.News = l.News[max(0, len(l.News)-mostNews):]
		return l, nil
	})
	return err
}
