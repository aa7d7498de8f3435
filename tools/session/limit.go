package session

import (
	"context"
	"fmt"
	"time"

	"codehand/tools/permission"
)

// A Limit is what a person has set for one session, on a page.
type Limit struct {
	// Mode is the one in which the session works, and above which it never goes; "": those of Modes. One of no known
	// name is plan.
	Mode  string    `json:"mode,omitempty"`
	Rules []SetRule `json:"rules,omitempty"` // that narrow what the session may do
	News  []string  `json:"news,omitempty"`  // what the session was not told yet of what the person did
	Let   bool      `json:"let,omitempty"`   // a person lets this chat work, where each new one needs that
}

// A SetRule is a rule that a person has set for one session, on a page. It denies, or else asks.
type SetRule struct {
	Rule string    `json:"rule"`
	Asks bool      `json:"asks,omitempty"`
	At   time.Time `json:"at"`
	By   string    `json:"by"` // the principal who set it
}

// Of returns the modes that hold under the limit: in which a session starts, and the highest.
func (l Limit) Of(m Modes) (start, highest permission.Mode) {
	if l.Mode == "" {
		return m.Start, m.Highest
	}
	mode, err := permission.ParseMode(l.Mode)
	if err != nil {
		mode = permission.Plan
	}
	mode = mode.AtMost(m.Highest)
	return mode, mode
}

// Narrow adds to the session's rules those that a person has set for it, and for the sessions whose sub-agent it is, as
// of the moment of a Snapshot. An error means that they are not known, so nothing may run.
func (s *State) Narrow(ctx context.Context, shown Snapshot) error {
	own, err := s.Limit.In(ctx, shown)
	if err != nil {
		return err
	}
	limits := []Limit{own}
	for _, over := range s.Over {
		l, err := over.Load(ctx)
		if err != nil {
			return err
		}
		limits = append(limits, l)
	}
	var deny, ask []permission.Rule
	for _, l := range limits {
		for _, r := range l.Rules {
			rule := permission.Rule{Text: r.Rule, Origin: permission.OnPage}
			if r.Asks {
				ask = append(ask, rule)
			} else {
				deny = append(deny, rule)
			}
		}
	}
	rules, err := s.Rules.With(deny, ask)
	if err != nil { // another version of codehand understood it
		return fmt.Errorf("rules of a session: %w", err)
	}
	s.Rules = rules
	return nil
}
