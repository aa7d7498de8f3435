package pauses

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// A Pause holds the calls of one principal, or of all.
type Pause struct {
	Of    string    `json:"of"` // a principal; "": everybody's calls
	By    string    `json:"by"` // the principal who wants that; "": not known
	Since time.Time `json:"since,omitzero"`
}

// Ends says whether a principal may end the pause: only an administrator ends one of everybody's calls.
func (p Pause) Ends(who string, admin bool) bool { return admin || p.Of != "" && p.Of == who }

// ErrNotYours says that there is no such pause, or that this person may not end it.
var ErrNotYours = errors.New("this pause is over, or was never yours")

// ordered puts the pause of everybody's calls first, then the oldest.
func ordered(all []Pause) []Pause {
	slices.SortFunc(all, func(a, b Pause) int {
		if (a.Of == "") != (b.Of == "") {
			return cmp.Compare(len(a.Of), len(b.Of))
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Of, b.Of))
	})
	return all
}
