package auth

import "time"

// A Source knows tokens that are in no tokens file. It is safe for concurrent use.
type Source interface {
	// Find says what a token stands for. ok is false if the token does not have the form of this source's tokens: the
	// next source is asked. The error is an *Error, with ok true.
	Find(text string, now time.Time) (f Found, ok bool, err error)
	// Valid says whether what who.Via names still holds; mine is false if Via is not of this source. Whether the
	// operator changed the rights meanwhile is not the source's business.
	Valid(who Principal) (valid, mine bool)
}

// Found is what a token of a Source stands for. A Found never gives more than the operator gives its principal.
type Found struct {
	ID     string   // the principal
	Values Values   // Roots, Mode, MaxMode, Profile, Scopes and Deny narrow those of the principal; the rest is ignored
	Groups []string // of the principal; what the operator says of them comes before what he says of all; may be nil
	Via    string   // becomes Principal.Via: "oauth:<grant>", "oidc:<name>"
}
