package server

import (
	"os"
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
// several clients start servers from short-lived threads. It belongs to one goroutine.
type parentWatch struct {
	pid    func() int
	now    func() time.Time
	ticker *time.Ticker // nil: off

	first int       // the parent when the first message came; 0: none came
	lost  time.Time // when the parent was missed; zero: it was not
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

// message notes a sign of life. One that comes after the parent left switches the watch off for good.
func (w *parentWatch) message() {
	switch {
	case w.first == 0:
		w.first = w.pid()
	case !w.lost.IsZero():
		w.stop()
		w.ticker = nil
		w.lost = time.Time{}
	}
}

// gone says whether the connection should end. busy says that a call runs.
func (w *parentWatch) gone(busy bool) bool {
	if w.first == 0 || w.pid() == w.first {
		return false
	}
	if w.lost.IsZero() || busy {
		w.lost = w.now()
		return false
	}
	return w.now().Sub(w.lost) >= parentPatience
}
