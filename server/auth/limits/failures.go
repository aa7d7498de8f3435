package limits

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Failed authentications that one client address has before it is refused unheard. They keep the log small and guessing
// slow; what keeps guesses from being right is the length of a token.
const (
	maxFailures   = 30
	failuresPer   = time.Minute
	failureMemory = 10_000 // addresses; the one whose last failure is oldest is forgotten
	ipv6Customer  = 64     // bits: who has one address of such a network has them all
)

// Failures counts failed authentications by client address. It is safe for concurrent use.
type Failures struct {
	mu  sync.Mutex
	by  map[netip.Prefix]*list.Element
	all list.List // of *failing, the last failure in front
}

// A failing is the last failures of one network. They are in a ring: the oldest is at n modulo its length.
type failing struct {
	from  netip.Prefix
	times [maxFailures]time.Time
	n     int // of all time
}

// network is what failures of an address count for. It is invalid for a Unix socket, whose callers cannot be told
// apart.
func network(at netip.Addr) netip.Prefix {
	n, _ := at.Prefix(min(at.BitLen(), ipv6Customer)) // of the zero Addr: invalid
	return n
}

// Refused says how long an address must still wait; 0: it need not.
func (f *Failures) Refused(at netip.Addr, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.by[network(at)]
	if e == nil {
		return 0
	}
	x := e.Value.(*failing)
	if x.n < maxFailures {
		return 0
	}
	return max(0, x.times[x.n%maxFailures].Add(failuresPer).Sub(now))
}

// Add counts a failure.
func (f *Failures) Add(at netip.Addr, now time.Time) {
	from := network(at)
	if !from.IsValid() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.by[from]
	if e == nil {
		if f.by == nil {
			f.by = map[netip.Prefix]*list.Element{}
		}
		e = f.all.PushFront(&failing{from: from})
		f.by[from] = e
	}
	f.all.MoveToFront(e)
	x := e.Value.(*failing)
	x.times[x.n%maxFailures] = now
	x.n++
	for back := f.all.Back(); ; back = f.all.Back() {
		old := back.Value.(*failing)
		last := old.times[(old.n-1)%maxFailures]
		if f.all.Len() <= failureMemory && now.Sub(last) < failuresPer {
			return
		}
		f.all.Remove(back)
		delete(f.by, old.from)
	}
}
