package permission

import "time"

// A Grant is a rule that a person allowed for the rest of a session.
type Grant struct {
	Rule string    `json:"rule"`
	At   time.Time `json:"at"`
}

// grantLife is how long a grant holds.
const grantLife = 24 * time.Hour

// Suggest returns the rule that would allow a call, as a person may be offered it: the first two words of a command, the
// literal path, the host. "": there is none that would be wise.
func (p *Policy) Suggest(r Request) string { return "" }
