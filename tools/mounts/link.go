package mounts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"codehand/tools/mounts/upstream"
)

const (
	firstPause = time.Second // before a server is started again
	mostPause  = time.Minute
	// bearable is how long a call waits for a pause to end, rather than be refused.
	bearable = 2 * time.Second
	// relistPause is the least time between two lists of a server whose tools change.
	relistPause = time.Second
)

// A link is a connection to a server that is made when it is needed. Its methods are safe for concurrent use.
type link struct {
	of        *mount
	principal string // whose it is; "": everybody's

	mu      sync.Mutex
	conn    *upstream.Conn // nil: there is none
	attempt *attempt       // that is under way; nil: none
	worked  bool           // a call was answered since the last failure
	failed  int            // how often in a row it could not be used
	again   time.Time      // when it may be tried next
	why     error          // the last failure; nil: there was none
	callers []*caller      // of the calls under way, in the order in which they came
	ended   bool
}

// An attempt is one try to connect.
type attempt struct {
	over  chan struct{} // closed when it has ended
	began time.Time
	stop  context.CancelFunc
}

// A downError says that a server cannot be used now.
type downError struct {
	why   error
	after time.Duration // until it is tried again
}

func (e *downError) Error() string { return e.why.Error() }
func (e *downError) Unwrap() error { return e.why }

var errEnding = errors.New("this server is ending")

// get is the connection. It is made if there is none, and waited for.
func (l *link) get(ctx context.Context) (*upstream.Conn, error) {
	for first := true; ; first = false {
		l.mu.Lock()
		if c := l.usable(); c != nil {
			l.mu.Unlock()
			return c, nil
		}
		if l.attempt == nil && !first {
			err := &downError{l.why, time.Until(l.again)}
			l.mu.Unlock()
			return nil, err
		}
		a, err := l.tryLocked()
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-a.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// usable is the connection if it holds; nil: there is none. l.mu is held.
func (l *link) usable() *upstream.Conn {
	if l.conn != nil && l.conn.Err() == nil {
		return l.conn
	}
	return nil
}

// begin starts an attempt if one makes sense.
func (l *link) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.usable() == nil {
		_, _ = l.tryLocked() // who needs it will be told why
	}
}

// tryLocked returns the attempt that is under way, which it starts. The error is a *downError, or errEnding.
func (l *link) tryLocked() (*attempt, error) {
	if l.ended {
		return nil, errEnding
	}
	if l.attempt != nil {
		return l.attempt, nil
	}
	if l.conn != nil { // it was lost, and its watch comes to that later
		l.lostLocked(l.conn)
	}
	pause := time.Until(l.again)
	if pause > bearable {
		return nil, &downError{l.why, pause}
	}
	ctx, stop := context.WithTimeout(l.of.of.ctx, max(pause, 0)+l.of.Start)
	a := &attempt{over: make(chan struct{}), began: time.Now(), stop: stop}
	l.attempt = a
	l.of.of.work.Go(func() {
		defer stop()
		l.connect(ctx, a, pause)
	})
	return a, nil
}

// connect is one attempt, after a pause.
func (l *link) connect(ctx context.Context, a *attempt, pause time.Duration) {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	relist := make(chan struct{}, 1)
	conn, err := l.dial(ctx, relist)
	l.mu.Lock()
	if err == nil && l.ended {
		err = errEnding
	}
	if err != nil {
		l.failLocked(err)
	} else {
		l.conn, l.why = conn, nil
		l.of.of.work.Go(func() { l.watch(conn, relist) })
	}
	l.attempt = nil
	l.mu.Unlock()
	close(a.over)
	if err != nil {
		if conn != nil {
			conn.Close()
		}
		if !errors.Is(err, errEnding) && l.of.of.ctx.Err() == nil {
			l.of.log.Warn("mounted server cannot be used", "cause", err)
		}
	}
}

func (l *link) dial(ctx context.Context, relist chan struct{}) (*upstream.Conn, error) {
	o, err := l.of.Reach()
	if err != nil {
		return nil, err
	}
	if l.of.Sign != nil {
		if o.HTTP, err = l.of.Sign(l.principal); err != nil {
			return nil, err
		}
	}
	o.Log = l.of.log
	o.Changed = func() {
		select {
		case relist <- struct{}{}:
		default:
		}
	}
	o.Ask = l.ask
	conn, err := upstream.Dial(ctx, o)
	if err != nil {
		return nil, l.late(ctx, err)
	}
	all, left, err := conn.Tools(ctx)
	if err != nil {
		conn.Close()
		return nil, l.late(ctx, fmt.Errorf("its list of tools: %w", err))
	}
	l.of.define(all, left)
	return conn, nil
}

// late says it where a server took too long.
func (l *link) late(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it did not answer within %s of its start", l.of.Start)
	}
	return err
}

// watch follows a connection until it is lost.
func (l *link) watch(conn *upstream.Conn, relist <-chan struct{}) {
	for {
		select {
		case <-conn.Lost():
			l.mu.Lock()
			if l.conn == conn {
				l.lostLocked(conn)
			}
			l.mu.Unlock()
			conn.Close()
			return
		case <-relist:
			l.relist(conn)
		}
	}
}

// relist asks for the list of tools again, and not at once for the next change.
func (l *link) relist(conn *upstream.Conn) {
	ctx, cancel := context.WithTimeout(l.of.of.ctx, l.of.Start)
	defer cancel()
	all, left, err := conn.Tools(ctx)
	if err == nil {
		l.of.define(all, left)
	} else if conn.Err() == nil {
		l.of.log.Warn("mounted server says that its tools changed, and does not list them", "cause", err)
	}
	timer := time.NewTimer(relistPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-conn.Lost():
	}
}

// lostLocked notes that a connection can be used no more. l.mu is held.
func (l *link) lostLocked(conn *upstream.Conn) {
	why := conn.Err()
	l.conn = nil
	if l.ended {
		return
	}
	l.failLocked(why)
	l.of.log.Warn("mounted server was lost", "cause", why)
}

// failLocked notes a failure, and when to try again. One after calls that were answered counts as the first. l.mu is
// held.
func (l *link) failLocked(why error) {
	if l.worked {
		l.failed, l.worked = 0, false
	}
	pause := min(firstPause<<min(l.failed, 10), mostPause)
	l.failed++
	l.why, l.again = why, time.Now().Add(pause)
}

// await waits for an attempt until it is so old.
func (l *link) await(ctx context.Context, age time.Duration) {
	l.mu.Lock()
	a := l.attempt
	l.mu.Unlock()
	if a == nil {
		return
	}
	timer := time.NewTimer(age - time.Since(a.began))
	defer timer.Stop()
	select {
	case <-a.over:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (l *link) starting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempt != nil
}

func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callers) == 0 && l.attempt == nil
}

// enter notes a call until leave, which says whether it was answered.
func (l *link) enter(c *caller) (leave func(answered bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers = append(l.callers, c)
	return func(answered bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.callers = slices.DeleteFunc(l.callers, func(other *caller) bool { return other == c })
		l.worked = l.worked || answered
	}
}

// forget gives up a connection that its server has forgotten; the next call makes one at once.
func (l *link) forget(conn *upstream.Conn) {
	l.mu.Lock()
	if l.conn == conn {
		l.conn = nil
	}
	l.mu.Unlock()
	conn.Close()
}

func (l *link) close() {
	l.mu.Lock()
	l.ended = true
	conn, a := l.conn, l.attempt
	l.conn = nil
	l.mu.Unlock()
	if a != nil {
		a.stop()
		<-a.over
	}
	if conn != nil {
		conn.Close()
	}
}
