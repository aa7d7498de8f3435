package permission

import (
	"strings"
	"time"
)

// A Grant is a rule that a person allowed for the rest of a session.
type Grant struct {
	Rule string    `json:"rule"`
	At   time.Time `json:"at"`
}

// grantLife is how long a grant holds.
const grantLife = 24 * time.Hour

// MaxGrants is how many grants of a session are looked at, the newest: each is parsed for each call that needs one. More
// need not be kept.
const MaxGrants = 200

// granted returns the grants that hold now and may be about the call, which are parsed once. One that does not parse was
// not suggested by us, and allows nothing.
func (r *Request) granted() []rule {
	if r.parsed {
		return r.grants
	}
	r.parsed = true
	for _, g := range r.Grants[max(0, len(r.Grants)-MaxGrants):] {
		if age := r.Now.Sub(g.At); age < 0 || age > grantLife {
			continue
		}
		if name, _, _ := strings.Cut(g.Rule, "("); strings.HasPrefix(name, mountPrefix) && name != r.Tool && !strings.HasPrefix(r.Tool, name) {
			continue
		}
		if parsed, err := parse(Rule{Text: g.Rule, Origin: Granted}, "", Allow); err == nil {
			r.grants = append(r.grants, parsed)
		}
	}
	return r.grants
}
