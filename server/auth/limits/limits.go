package limits

import (
	"sync"
	"time"
)

// A Limiter is the Quota of one principal in use. It is safe for concurrent use.
type Limiter struct {
	now func() time.Time

	mu          sync.Mutex // covers what follows, and the Turns of both queues
	quota       Quota
	used        time.Time // last
	requests    bucket
	in          bucket // bytes
	out         bucket
	calls       bucket
	streams     int
	connections map[string]int // requests on each
	unnamed     int            // connections without an address of their own
	running     queue          // calls
	shells      queue
}

// minute is the pace of a quota that a principal may use up at once.
func minute(n float64) pace { return pace{n, n} }

// callPace: without a burst the calls of a minute may come at once.
func callPace(q Quota) pace {
	p := minute(float64(q.CallsPerMinute))
	if q.Burst > 0 {
		p.most = float64(q.Burst)
	}
	return p
}

// touch notes that the Limiter is in use. The caller has mu.
func (l *Limiter) touch() time.Time {
	l.used = l.now()
	return l.used
}

// An OverError says that a request must wait, since one limit of the Quota is used up.
type OverError struct {
	Quota string        // the limit, by its key, such as "requests_per_minute"
	After time.Duration // when to try again; more than 0
}

// Error says which limit it is, for people.
func (e *OverError) Error() string {
	return "Over the quota of this principal: " + e.Quota + ". Wait, then try again."
}

// Request counts one request of n bytes. Who does not know n counts the most that it may be, and gives back the rest
// with Unread. The error is an *OverError; then nothing is counted. A body larger than what a minute allows
// costs a whole minute.
func (l *Limiter) Request(n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, size := l.touch(), float64(max(n, 0))
	requests, in, out := minute(float64(l.quota.RequestsPerMinute)), minute(float64(l.quota.BytesInPerMinute)),
		minute(float64(l.quota.BytesOutPerMinute))
	if after := l.requests.wait(now, requests, 1); after > 0 {
		return &OverError{"requests_per_minute", after}
	}
	if after := l.in.wait(now, in, size); after > 0 {
		return &OverError{"bytes_in_per_minute", after}
	}
	if after := l.out.wait(now, out, 0); after > 0 {
		return &OverError{"bytes_out_per_minute", after}
	}
	l.requests.take(now, requests, 1)
	// an announced terabyte is never read, and must not close the door for a year
	l.in.take(now, in, min(size, in.most))
	return nil
}

// Unread gives back n bytes that Request counted and that did not come.
func (l *Limiter) Unread(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in.giveBack(l.touch(), minute(float64(l.quota.BytesInPerMinute)), float64(max(n, 0)))
}

// Sent counts n bytes of answers. What is over the rate makes the next Request fail.
func (l *Limiter) Sent(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out.take(l.touch(), minute(float64(l.quota.BytesOutPerMinute)), float64(max(n, 0)))
}

// openAfter is when to try again to open what others must close first: when they do is unknown, so not at once.
const openAfter = 5 * time.Second

// Stream counts an open stream. end gives it back, once. The error is an *OverError.
func (l *Limiter) Stream() (end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touch()
	if most := l.quota.Streams; most > 0 && l.streams >= most {
		return func() {}, &OverError{"streams", openAfter}
	}
	l.streams++
	return l.once(func() { l.streams-- }), nil
}

// Connection counts the connection of a request, by its http.Request.RemoteAddr, as one that the principal uses; end
// gives it back, once. Two requests at the same time on one connection count once. A connection that rests counts for
// no principal: behind a proxy it is the proxy's. The error is an *OverError.
func (l *Limiter) Connection(remote string) (end func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touch()
	key := remote
	if key == "@" { // a Unix socket, as all of them are called
		key = ""
	}
	if l.connections[key] == 0 || key == "" {
		if most := l.quota.Connections; most > 0 && len(l.connections)+l.unnamed >= most {
			return func() {}, &OverError{"connections", openAfter}
		}
	}
	if key == "" {
		l.unnamed++
		return l.once(func() { l.unnamed-- }), nil
	}
	if l.connections == nil {
		l.connections = map[string]int{}
	}
	l.connections[key]++
	return l.once(func() {
		if l.connections[key]--; l.connections[key] == 0 {
			delete(l.connections, key)
		}
	}), nil
}

// once makes a function that does something under the lock, the first time.
func (l *Limiter) once(do func()) func() {
	done := false
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !done {
			done = true
			l.touch()
			do()
		}
	}
}

// Call counts a call against the rate. ok is false if it is over; then after is when to try again, and nothing is
// counted.
func (l *Limiter) Call() (after time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, p := l.touch(), callPace(l.quota)
	if after = l.calls.wait(now, p, 1); after > 0 {
		return after, false
	}
	l.calls.take(now, p, 1)
	return 0, true
}

// set takes new numbers.
func (l *Limiter) set(q Quota, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = now
	if l.quota == q {
		return
	}
	l.quota = q
	l.running.resize(q.ConcurrentCalls)
	l.shells.resize(q.ConcurrentShells)
}

// idle says whether the Limiter is as good as a new one, and has been left alone for a while.
func (l *Limiter) idle(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.used) < forgetAfter || l.streams > 0 || len(l.connections) > 0 || l.unnamed > 0 || l.running.inUse() ||
		l.shells.inUse() {
		return false
	}
	q := l.quota
	l.requests.drain(now, minute(float64(q.RequestsPerMinute)))
	l.in.drain(now, minute(float64(q.BytesInPerMinute)))
	l.out.drain(now, minute(float64(q.BytesOutPerMinute)))
	l.calls.drain(now, callPace(q))
	return l.requests.used+l.in.used+l.out.used+l.calls.used == 0
}

const (
	forgetAfter = 10 * time.Minute // longer than a request runs without using its Limiter
	forgetEvery = time.Minute
)

// Limiters are the Limiters of all principals, by ID. The zero value is ready. They are safe for concurrent use.
type Limiters struct {
	mu    sync.Mutex
	by    map[string]*Limiter
	swept time.Time
}

// Of returns the Limiter of a principal, with the numbers of q. clock is asked for the time as long as they are kept.
func (m *Limiters) Of(principal string, q Quota, clock func() time.Time) *Limiter {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := clock()
	if now.Sub(m.swept) >= forgetEvery {
		m.swept = now
		for id, l := range m.by {
			if id != principal && l.idle(now) {
				delete(m.by, id)
			}
		}
	}
	l := m.by[principal]
	if l == nil {
		if m.by == nil {
			m.by = map[string]*Limiter{}
		}
		l = &Limiter{now: clock}
		l.running.mu, l.shells.mu = &l.mu, &l.mu
		m.by[principal] = l
	}
	l.set(q, now)
	return l
}
