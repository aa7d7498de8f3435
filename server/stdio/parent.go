package stdio

import (
	"os"
	"sync/atomic"
	"time"
)

const (
	// parentEvery is how often the parent is looked at.
	parentEvery = 5 * time.Second
	// parentPatience is how long a server whose parent is gone waits for a sign of the client: a wrapper may have
	// left while the client lives.
	parentPatience = time.Minute
)

// A parentWatch notices that the process which started this one is gone. Clients die without closing the pipe when a
// wrapper or a grandchild holds it open. PR_SET_PDEATHSIG would not do: it fires when the parent's thread ends, and
// several clients start servers from short-lived threads. message is for the goroutine that reads, the rest for the one
// that waits.
type parentWatch struct {
	pid    func() int
	now    func() time.Time
	ticker *time.Ticker // nil: off

	first atomic.Int64 // the parent when the first message came; 0: none came
	lost  atomic.Int64 // when the parent was missed, in Unix nanoseconds; 0: it was not
	off   atomic.Bool  // for good
}

func newParentWatch(on bool) *parentWatch {
	w := &parentWatch{pid: os.Getppid, now: time.Now}
	if on {
		w.ticker = time.NewTicker(parentEvery)
	}
	return w
}

func (w *parentWatch) stop() {
	if w.ticker != nil {
		w.ticker.Stop()
	}
}

// tick is when gone wants to be asked; nil if the watch is off.
func (w *parentWatch) tick() <-chan time.Time {
	if w.ticker == nil {
		return nil
	}
	return w.ticker.C
}

// message notes a sign of life. One that comes after the parent left switches the watch off for good: a wrapper left,
// and the client lives.
func (w *parentWatch) message() {
	switch now := int64(w.pid()); w.first.Load() {
	case 0:
		w.first.Store(now)
	case now:
	default:
		w.off.Store(true)
	}
}

// gone says whether the connection should end. busy says that a call runs.
func (w *parentWatch) gone(busy bool) bool {
	first := w.first.Load()
	if w.off.Load() || first == 0 || int64(w.pid()) == first {
		return false
	}
	now := w.now()
	since := w.lost.Load()
	if since == 0 || busy {
		w.lost.Store(now.UnixNano())
		return false
	}
	return now.Sub(time.Unix(0, since)) >= parentPatience
}
