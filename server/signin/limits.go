package signin

import (
	"container/list"
	"crypto/rand"
	"crypto/subtle"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"codehand/server/people"
)

// Failed attempts to sign in slow down further ones from the same network and for the same name. An attacker cannot
// shut a person out for ever: the delay ends after a minute at most, a browser in which the person signed in before has
// delays of its own, a passkey has none, and a new password (codehand owner new) forgets those of its name.
const (
	freeFailures = 5  // of a name or a browser, without a delay
	freeNetwork  = 20 // of a network, behind which several people may be
	maxDelay     = time.Minute
	forgetAfter  = time.Hour
	maxLimits    = 10_000 // names and networks; the one that failed longest ago is forgotten
	ipv6Network  = 64     // bits: who has one address of it has them all
	markLife     = 180 * 24 * time.Hour
)

// limits count failures by key. It is safe for concurrent use.
type limits struct {
	mu  sync.Mutex
	by  map[string]*list.Element
	all list.List // of *failing, the last failure in front
}

type failing struct {
	key  string
	n    int
	last time.Time
}

// reserve says how long the caller must wait before it may try, as any of keys demands. If it need not wait, it counts
// as having failed from now on, so that many attempts at once are not all free; succeeded takes that back.
func (l *limits) reserve(keys []limitKey, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if e := l.by[k.key]; e != nil {
			f := e.Value.(*failing)
			wait = max(wait, f.last.Add(delay(f.n-k.free)).Sub(now))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, k := range keys {
		l.add(k.key, now)
	}
	return 0
}

// delay is how long after its last failure a key must wait that failed n times more than it may: 1 s, 2 s, 4 s, and so
// on.
func delay(n int) time.Duration {
	if n < 0 {
		return 0
	}
	return min(maxDelay, time.Second<<min(n, 10))
}

func (l *limits) add(key string, now time.Time) {
	if l.by == nil {
		l.by = map[string]*list.Element{}
	}
	e := l.by[key]
	if e == nil {
		e = l.all.PushFront(&failing{key: key})
		l.by[key] = e
	}
	l.all.MoveToFront(e)
	f := e.Value.(*failing)
	if now.Sub(f.last) > forgetAfter {
		f.n = 0
	}
	f.n, f.last = f.n+1, now
	for {
		back := l.all.Back()
		old := back.Value.(*failing)
		if l.all.Len() <= maxLimits && now.Sub(old.last) <= forgetAfter {
			return
		}
		l.all.Remove(back)
		delete(l.by, old.key)
	}
}

// succeeded forgets the failures of a name or browser, and takes the attempt back from a network.
func (l *limits) succeeded(keys []limitKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		e := l.by[k.key]
		if e == nil {
			continue
		}
		f := e.Value.(*failing)
		if f.n--; f.n <= 0 || !k.shared {
			l.all.Remove(e)
			delete(l.by, k.key)
		}
	}
}

// A limitKey is what failures count for.
type limitKey struct {
	key    string
	free   int
	shared bool // by several people
}

// limitKeysOf are what an attempt for a name counts for. Whether there is such a person makes no difference.
func limitKeysOf(v *visit, name string, person people.Person) []limitKey {
	if id := markOf(v, person); id != "" {
		return []limitKey{{key: "browser " + id, free: freeFailures}}
	}
	keys := []limitKey{{key: "name " + strconv.Itoa(person.Epoch) + " " + name, free: freeFailures}}
	if at := v.p.o.ClientIP(v.r); at.IsValid() {
		keys = append(keys, limitKey{key: "net " + network(at), free: freeNetwork, shared: true})
	}
	return keys
}

func network(at netip.Addr) string {
	bits := at.BitLen()
	if at.Is6() {
		bits = ipv6Network
	}
	n, _ := at.Prefix(bits) // valid for a valid address
	return n.String()
}

// mark lets the browser show later that this person has signed in with it. A new password makes it worthless.
func mark(v *visit, person people.Person) {
	id := rand.Text()
	v.setCookie(markCookie, id+"."+v.p.sign("mark", id, person.ID, strconv.Itoa(person.Epoch)), markLife)
}

// markOf returns the id of the browser's mark, if it has one of this person.
func markOf(v *visit, person people.Person) string {
	c, err := v.r.Cookie(v.cookieName(markCookie))
	if err != nil || person.ID == "" {
		return ""
	}
	id, mac, _ := strings.Cut(c.Value, ".")
	want := v.p.sign("mark", id, person.ID, strconv.Itoa(person.Epoch))
	if subtle.ConstantTimeCompare([]byte(mac), []byte(want)) != 1 {
		return ""
	}
	return id
}
