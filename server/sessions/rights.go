package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/tools/permission"
	"codehand/tools/session"
)

// Rights are what a session in use may do, as far as a person may change that while it is connected.
type Rights struct {
	Key    session.Key
	Mode   permission.Mode    // in force
	Chosen string             // the mode that a person set; "": none, so those of the operator hold
	Usual  permission.Mode    // in which the operator has it start
	Modes  []permission.Mode  // that a person may set: no operator's limit is below them; the strictest first
	Grants []permission.Grant // that hold now
}

var (
	// ErrNotOpen says that no session of that name is in use: its next call opens it.
	ErrNotOpen = errors.New("this session is not in use")
	// ErrMode says that a mode is none of Rights.Modes.
	ErrMode = errors.New("this mode is not one that the operator allows here")
)

// offered are the modes that people may set, the strictest first. Auto needs a classifier, so only a session that
// starts in it has it.
var offered = []permission.Mode{permission.Plan, permission.DontAsk, permission.Default, permission.AcceptEdits,
	permission.Auto, permission.Bypass}

// states are the sessions in use, one for each key: that of the tenant which may do most.
func (t *Table) states(of func(session.Key) bool) (all []*session.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := map[session.Key]*session.State{}
	for at, l := range t.live {
		if !of(at.key) {
			continue
		}
		if known := most[at.key]; known == nil || known.Highest.AtMost(l.state.Highest) == known.Highest {
			most[at.key] = l.state
		}
	}
	for _, st := range most {
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b *session.State) int {
		return cmp.Or(strings.Compare(a.Key.Principal, b.Key.Principal), strings.Compare(a.Key.Session, b.Key.Session))
	})
	return all
}

// Rights returns those of the sessions in use.
func (t *Table) Rights(ctx context.Context, of func(session.Key) bool) (all []Rights, err error) {
	now := time.Now()
	for _, st := range t.states(of) {
		r := Rights{Key: st.Key, Usual: st.Start, Modes: modesOf(st)}
		limit, err := st.Limit.Load(ctx)
		if err == nil {
			r.Mode, _, err = st.InForce(ctx, now)
		}
		if err == nil && !st.Shared { // else a grant counts for nothing
			r.Grants, err = st.Grants.Load(ctx)
		}
		if err != nil {
			return nil, err
		}
		r.Chosen, r.Grants = limit.Mode, permission.Holding(r.Grants, now)
		all = append(all, r)
	}
	return all, nil
}

func modesOf(st *session.State) (all []permission.Mode) {
	for _, m := range offered {
		if m.AtMost(st.Highest) == m && (m != permission.Auto || st.Start == m) {
			all = append(all, m)
		}
	}
	return all
}

// SetMode sets the mode in which sessions in use work from their next call on, and above which they never go; "" gives
// them back to the operator's settings.
func (t *Table) SetMode(ctx context.Context, of func(session.Key) bool, mode string) error {
	all := t.states(of)
	if len(all) == 0 {
		return ErrNotOpen
	}
	for _, st := range all {
		if mode != "" && !slices.ContainsFunc(modesOf(st), func(m permission.Mode) bool { return m.String() == mode }) {
			return ErrMode
		}
	}
	for _, st := range all {
		// The limit comes first: whatever fails then, the session goes no higher than it.
		said := "gave the mode of this session back to the operator's settings: it is " + st.Start.String()
		if mode != "" {
			said = "set the mode of this session to " + mode + "; it does not go above that"
		}
		err := limited(ctx, st, said, func(l *session.Limit) { l.Mode = mode })
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

// TakeBack ends a rule that was allowed in sessions in use, from their next call on. ErrNotOpen: none has it.
func (t *Table) TakeBack(ctx context.Context, of func(session.Key) bool, rule string) error {
	found := false
	for _, st := range t.states(of) {
		had := false
		_, err := st.Grants.Change(ctx, func(all []permission.Grant) ([]permission.Grant, error) {
			n := len(all)
			all = slices.DeleteFunc(all, func(g permission.Grant) bool { return g.Rule == rule })
			had = len(all) < n
			return all, nil
		})
		if err == nil && had {
			found = true
			err = limited(ctx, st, "took back what this session was allowed: "+rule, func(*session.Limit) {})
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

// limited changes what a person has set for a session, which is told of it with its next result.
func limited(ctx context.Context, st *session.State, said string, change func(*session.Limit)) error {
	_, err := st.Limit.Change(ctx, func(l session.Limit) (session.Limit, error) {
		change(&l)
		l.News = append(l.News, "[on the page the user "+said+"]")
		l.News = l.News[max(0, len(l.News)-mostNews):]
		return l, nil
	})
	return err
}
