package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"time"
)

const (
	beatEvery = 2 * time.Second // a frame comes at least so often
	lostAfter = 6 * time.Second // without one the other end is lost
	lookEvery = time.Second
)

// Why a link is over.
var (
	errLost  = errors.New("relay: the other node does not answer")
	errGone  = errors.New("relay: the other node gave the request up")
	errMoved = errors.New("relay: that node does not serve the principal")
	errEnded = errors.New("relay: this node ends")
)

// A link is one end of an exchange. It is safe for concurrent use.
type link struct {
	wire      Wire
	to, reply string // subjects of the other end, and where answers go

	sending sync.Mutex // numbered frames leave in order; covers sent
	sent    uint32

	ctx   context.Context // ends with the link
	over  context.CancelCauseFunc
	wake  chan struct{} // holds a token when there may be frames
	roomy chan struct{} // holds a token when there may be room

	mu    sync.Mutex // covers the rest
	sends int        // frames of any kind that left
	got   uint32     // the number of the last frame
	queue []frame    // that nobody has taken
	taken int        // cost of parts that were taken and not acknowledged
	room  int        // cost of parts that may be sent
	heard time.Time
	spoke time.Time
}

func newLink(w Wire, to, reply string) *link {
	now := time.Now()
	l := &link{
		wire: w, to: to, reply: reply, wake: make(chan struct{}, 1), roomy: make(chan struct{}, 1), room: window,
		heard: now, spoke: now,
	}
	l.ctx, l.over = context.WithCancelCause(context.Background())
	return l
}

// end ends the link, for the first reason that is given.
func (l *link) end(why error) { l.over(why) }

// err is why the link is over; nil: it is not.
func (l *link) err() error { return context.Cause(l.ctx) }

// send sends a frame now. An error means that the other end did not get it; of a numbered one it ends the link.
func (l *link) send(kind byte, head, body []byte) error {
	f := frame{kind: kind, head: head, body: body}
	if numbered(kind) {
		l.sending.Lock()
		defer l.sending.Unlock()
		l.sent++
		f.number = l.sent
	}
	l.mu.Lock()
	l.sends++ // before it leaves: whoever hears that it reached nobody asks
	l.mu.Unlock()
	err := l.wire.Send(l.to, l.reply, f.encode())
	if err != nil && numbered(kind) {
		l.end(errLost)
	}
	if err == nil {
		l.mu.Lock()
		l.spoke = time.Now()
		l.mu.Unlock()
	}
	return err
}

// sendPart is send for a part of a body: it waits for room until the deadline.
func (l *link) sendPart(until <-chan struct{}, kind byte, head, body []byte) error {
	cost := len(body) + frameCost
	for {
		err := l.err()
		l.mu.Lock()
		free := l.room >= cost
		if err == nil && free {
			l.room -= cost
		}
		more := l.room > 0
		l.mu.Unlock()
		switch {
		case err != nil:
			return err
		case free:
			if more {
				token(l.roomy) // for another sender
			}
			return l.send(kind, head, body)
		}
		select {
		case <-l.ctx.Done():
		case <-l.roomy:
		case <-until:
			return os.ErrDeadlineExceeded
		}
	}
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// next waits for a frame until stop or the end of the link; what came before the end is returned first.
func (l *link) next(stop <-chan struct{}) (frame, error) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			f := l.queue[0]
			l.queue[0] = frame{}
			l.queue = l.queue[1:]
			l.taken += len(f.body) + frameCost
			ack := 0
			if l.taken >= window/4 {
				ack, l.taken = l.taken, 0
			}
			l.mu.Unlock()
			if ack > 0 {
				// without it the other end waits until its time is over
				_ = l.send(frameAck, binary.BigEndian.AppendUint32(nil, uint32(ack)), nil)
			}
			return f, nil
		}
		l.mu.Unlock()
		if err := l.err(); err != nil {
			return frame{}, err
		}
		select {
		case <-l.wake:
		case <-l.ctx.Done():
		case <-stop:
			return frame{}, errEnded
		}
	}
}

// take takes what came for the link.
func (l *link) take(f frame) {
	l.mu.Lock()
	l.heard = time.Now()
	switch {
	case f.kind == frameAck && len(f.head) == 4:
		l.room += int(binary.BigEndian.Uint32(f.head))
		token(l.roomy)
	case numbered(f.kind) && l.ctx.Err() == nil && f.number == l.got+1:
		l.got++
		l.queue = append(l.queue, f)
		token(l.wake)
	}
	missing := numbered(f.kind) && f.number > l.got
	l.mu.Unlock()
	switch {
	case missing: // the wire lost one
		l.end(errLost)
	case f.kind == frameGone:
		l.end(errGone)
	case f.kind == frameMoved:
		l.end(errMoved)
	}
}

// nobody ends the link after one of its frames reached nobody. Only if no other one was sent nothing was done: the end
// of the other node is heard the same way.
func (l *link) nobody() {
	l.mu.Lock()
	first := l.sends == 1
	l.mu.Unlock()
	if first {
		l.end(errNobody)
	} else {
		l.end(errLost)
	}
}

// look sends a beat where it is due, and ends the link if none came.
func (l *link) look(now time.Time) {
	l.mu.Lock()
	beat, lost := now.Sub(l.spoke) >= beatEvery, now.Sub(l.heard) >= lostAfter
	l.mu.Unlock()
	if lost {
		l.end(errLost)
	} else if beat {
		_ = l.send(frameBeat, nil, nil) // the next one may come through
	}
}

// links are those of one node, by the subject of their caller. It is safe for concurrent use.
type links struct {
	stop    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	all    map[string]*link
	closed bool
}

func newLinks() *links {
	t := &links{stop: make(chan struct{}), all: map[string]*link{}}
	t.running.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-t.stop:
				return
			case now := <-ticker.C:
				for _, l := range t.list() {
					l.look(now)
				}
			}
		}
	})
	return t
}

func (t *links) list() []*link {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*link, 0, len(t.all))
	for _, l := range t.all {
		all = append(all, l)
	}
	return all
}

func (t *links) find(name string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[name]
}

// add adds a link. After close it is over at once.
func (t *links) add(name string, l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		l.end(errEnded)
		return
	}
	t.all[name] = l
}

func (t *links) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, name)
}

// close ends all links, and tells the other ends.
func (t *links) close() {
	close(t.stop)
	t.running.Wait()
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, l := range t.list() {
		_ = l.send(frameGone, nil, nil) // else it is lost there after a while
		l.end(errEnded)
	}
}
