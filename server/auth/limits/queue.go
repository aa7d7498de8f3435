package limits

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxTurnWait is how long a call waits for its turn: several clients give up after 60 s, and other waits follow.
const maxTurnWait = 10 * time.Second

// A queue lets so many in at the same time, strictly in the order in which they came.
type queue struct {
	mu      *sync.Mutex // of the Limiter; covers everything, also of the Turns
	most    int         // 0: all
	in      int
	waiting []*Turn
}

// A Turn is a place in a queue. It is safe for concurrent use.
type Turn struct {
	q      *queue
	called chan struct{} // closed when it has come or was given up; nil: no call waits for it
	in     bool
	left   bool
}

// Arrive takes a place in the queue for one of the concurrent calls, in the order of the calls of Arrive. Leave must
// follow.
func (l *Limiter) Arrive() *Turn { return l.arrive(&l.running) }

// Shell takes a place in the queue for one of the concurrent foreground commands. Leave must follow.
func (l *Limiter) Shell() *Turn { return l.arrive(&l.shells) }

func (l *Limiter) arrive(q *queue) *Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &Turn{q: q}
	q.waiting = append(q.waiting, t)
	q.advance()
	return t
}

// Wait waits until the turn has come, at most 10 s. ok is false if it did not come; err is that of ctx. Then the place
// is given up, so the turns behind it do not wait for Leave.
func (t *Turn) Wait(ctx context.Context) (ok bool, err error) {
	called, ok := t.waits()
	if called == nil { // as for most
		return ok, nil
	}
	limit := time.NewTimer(maxTurnWait)
	defer limit.Stop()
	select {
	case <-called:
	case <-limit.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.in && !t.left { // also if it came at the last moment
		return true, nil
	}
	t.leave()
	return false, err
}

// waits returns what is closed when the turn comes or is given up. nil: that has been, and ok says which.
func (t *Turn) waits() (called <-chan struct{}, ok bool) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.in || t.left {
		return nil, !t.left
	}
	if t.called == nil {
		t.called = make(chan struct{})
	}
	return t.called, false
}

// Leave gives the place back, also one whose turn never came. It does nothing the second time.
func (t *Turn) Leave() {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	t.leave()
}

// leave: the caller has mu.
func (t *Turn) leave() {
	if t.left {
		return
	}
	t.left = true
	if t.in {
		t.q.in--
	} else {
		t.wake()
		t.q.waiting = slices.DeleteFunc(t.q.waiting, func(o *Turn) bool { return o == t })
	}
	t.q.advance()
}

// wake ends the wait for a turn that has come or was given up: one of the two, and once. The caller has mu.
func (t *Turn) wake() {
	if t.called != nil {
		close(t.called)
	}
}

// advance admits turns from the front, as many as fit: none overtakes another. The caller holds mu.
func (q *queue) advance() {
	for len(q.waiting) > 0 && (q.most == 0 || q.in < q.most) {
		t := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		q.in++
		t.in = true
		t.wake()
	}
}

// resize takes a new number. Who is in stays, also if there are more.
func (q *queue) resize(most int) {
	q.most = most
	q.advance()
}

func (q *queue) inUse() bool { return q.in > 0 || len(q.waiting) > 0 }
