package oauth

import (
	"net/netip"
	"sync"
	"time"
)

// A pace is how often one network may do something.
type pace struct {
	most float64       // at once
	each time.Duration // until one more
}

// Rates of what costs something before a person has signed in.
var (
	paceRegister = pace{100, 36 * time.Second}       // a write each
	paceFetch    = pace{30, 2 * time.Second}         // a request of ours each
	paceFailed   = pace{120, 500 * time.Millisecond} // answers of the token endpoint that are no tokens
)

// maxPaced is how many networks are remembered. Beyond that all are forgotten: what they did is not worth the memory,
// and what they can fill has limits of its own.
const maxPaced = 10_000

// rates count what networks do. An IPv6 network is a /64: who has one of its addresses has them all. They are safe for
// concurrent use.
type rates struct {
	now func() time.Time
	mu  *sync.Mutex
	by  map[ratekey]*level
}

type ratekey struct {
	what pace
	from netip.Prefix
}

type level struct {
	used float64
	at   time.Time
}

func newRates(now func() time.Time) rates {
	return rates{now: now, mu: new(sync.Mutex), by: map[ratekey]*level{}}
}

// take counts one, if there is room for it; else it says how long to wait.
func (r rates) take(p pace, at netip.Addr) (wait time.Duration) {
	from, _ := at.Prefix(min(at.BitLen(), 64)) // of a unix socket: invalid, and one for all
	r.mu.Lock()
	defer r.mu.Unlock()
	now, key := r.now(), ratekey{p, from}
	l := r.by[key]
	if l == nil {
		if len(r.by) >= maxPaced {
			clear(r.by)
		}
		l = &level{at: now}
		r.by[key] = l
	}
	if past := now.Sub(l.at); past > 0 {
		l.used = max(0, l.used-float64(past)/float64(p.each))
		l.at = now
	}
	if over := l.used + 1 - p.most; over > 0 {
		return time.Duration(over * float64(p.each))
	}
	l.used++
	return 0
}
