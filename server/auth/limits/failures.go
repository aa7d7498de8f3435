package limits

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Failed authentications that one client address has before each further failure is answered with a wait. They keep the
// log small and the sources of tokens unasked; what keeps guesses from being right is the length of a token.
const (
	maxFailures   = 30
	failuresPer   = time.Minute
	lockoutTold   = 10 * time.Minute // how often Add tells of one address
	failureMemory = 10_000           // addresses; the one whose last failure is oldest is forgotten
	ipv6Customer  = 64               // bits: who has one address of such a network has them all
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
	n     int       // of all time
	told  time.Time // when Add last said that it must wait
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
	return e.Value.(*failing).wait(now)
}

func (x *failing) wait(now time.Time) time.Duration {
	if x.n < maxFailures {
		return 0
	}
	return max(0, x.times[x.n%maxFailures].Add(failuresPer).Sub(now))
}

// Add counts a failure. It returns true if the address must wait from now on, at most once in 10 min for one address:
// a client that goes on failing is one line of a log.
func (f *Failures) Add(at netip.Addr, now time.Time) (locked bool) {
	from := network(at)
	if !from.IsValid() {
		return false
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
	if x.wait(now) > 0 && (x.told.IsZero() || now.Sub(x.told) >= lockoutTold) {
		x.told, locked = now, true
	}
	for back := f.all.Back(); ; back = f.all.Back() {
		old := back.Value.(*failing)
		last := old.times[(old.n-1)%maxFailures]
		if f.all.Len() <= failureMemory && now.Sub(last) < failuresPer {
			return locked
		}
		f.all.Remove(back)
		delete(f.by, old.from)
	}
}
