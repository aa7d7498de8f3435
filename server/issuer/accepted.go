package issuer

import (
	"crypto/sha256"
	"time"

	"codehand/server/auth"
)

// accepted are tokens that were verified a short while ago, by the SHA-256 of their text. The zero value is empty.
type accepted struct {
	known map[[sha256.Size]byte]acceptance
}

type acceptance struct {
	found auth.Found
	until time.Time
}

// get returns what a token stood for, if that still counts. The lists in it are shared: callers must not change them.
func (a *accepted) get(sum [sha256.Size]byte, now time.Time) (auth.Found, bool) {
	k, ok := a.known[sum]
	return k.found, ok && now.Before(k.until)
}

// put remembers a token that ends at ends.
func (a *accepted) put(sum [sha256.Size]byte, f auth.Found, now, ends time.Time) {
	until := now.Add(acceptedFor)
	if ends.Before(until) {
		until = ends
	}
	if a.known == nil {
		a.known = map[[sha256.Size]byte]acceptance{}
	}
	if len(a.known) >= maxAccepted {
		a.makeRoom(now)
	}
	a.known[sum] = acceptance{f, until}
}

// makeRoom forgets what no longer counts, and a tenth of the rest if that is all of it: verifying anew is cheap, and
// going over them all for each token is not.
func (a *accepted) makeRoom(now time.Time) {
	for sum, k := range a.known {
		if !now.Before(k.until) {
			delete(a.known, sum)
		}
	}
	for sum := range a.known {
		if len(a.known) <= maxAccepted-maxAccepted/10 {
			return
		}
		delete(a.known, sum)
	}
}
