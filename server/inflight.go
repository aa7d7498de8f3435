package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
)

// maxInFlight is how many requests one scope may have open. A client that sends more without reading answers would
// otherwise grow our memory without bound.
const maxInFlight = 1024

// errAnswered says that a request has its answer, or will get none, so nothing more may be sent for it.
var errAnswered = errors.New("request is answered or cancelled")

// The causes of a cancel.
var (
	errClientCancel = errors.New("cancelled by the client")
	errConnection   = errors.New("the connection ends")
)

// What a flight can be.
const (
	flightOpen int32 = iota
	flightAnswered
	flightCancelled
)

// A flight is one request from its arrival to its answer.
type flight struct {
	id     json.RawMessage // as sent
	call   bool            // a tools/call
	first  bool            // an initialize: its cancel is ignored
	lost   func()          // tells the call that its client left; nil: it need not know
	orphan bool            // it may finish when its client is gone: it may have begun to change something
	cancel context.CancelCauseFunc

	// state is changed to answered only by who has the writer's turn, so a note is never written after the answer, and a
	// cancel that comes while the answer waits for a client that does not read still counts.
	state atomic.Int32
}

// waits says whether the request still waits for its answer.
func (f *flight) waits() bool { return f.state.Load() == flightOpen }

// cancelled says whether it was cancelled before its answer was written.
func (f *flight) cancelled() bool { return f.state.Load() == flightCancelled }

// abort cancels the request, if it still waits: it gets no answer and no further notification. Its id is free at once.
func (f *flight) abort(cause error) {
	if f.state.CompareAndSwap(flightOpen, flightCancelled) {
		f.cancel(cause)
	}
}

// settle says that the answer is about to be written. It is false the second time, and after a cancel.
func (f *flight) settle() bool { return f.state.CompareAndSwap(flightOpen, flightAnswered) }

// An inflight is the table of one scope's open requests, by raw id. It is safe for concurrent use.
type inflight struct {
	mu      sync.Mutex
	open    map[string]*flight
	n       int           // flights whose goroutine has not ended, cancelled ones too
	closed  bool          // no more are taken
	drained chan struct{} // closed when n is 0 and no more are taken; nil until close
}

// The reasons for which add refuses.
var (
	errIDInUse = errors.New("request id already in use")
	errTooMany = errors.New("too many requests in flight")
)

func (t *inflight) add(f *flight) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errConnection
	}
	if o := t.open[string(f.id)]; o != nil && o.waits() { // one whose answer is written has given its id back
		return errIDInUse
	}
	if t.n >= maxInFlight {
		return errTooMany
	}
	if t.open == nil {
		t.open = map[string]*flight{}
	}
	t.open[string(f.id)] = f
	t.n++
	return nil
}

// done forgets a flight whose goroutine ends.
func (t *inflight) done(f *flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.open[string(f.id)] == f {
		delete(t.open, string(f.id))
	}
	if t.closed && t.n == 0 {
		close(t.drained)
	}
}

// close takes no more requests. The channel is closed when all have ended.
func (t *inflight) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed, t.drained = true, make(chan struct{})
		if t.n == 0 {
			close(t.drained)
		}
	}
	return t.drained
}

// closing says whether close was called.
func (t *inflight) closing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// cancelID cancels the request with this raw id: no answer and no further notification. Its id is free at once. An
// unknown or answered id is ignored, since some clients cancel every finished call, and so is that of an initialize.
func (t *inflight) cancelID(id json.RawMessage, cause error) {
	t.mu.Lock()
	f := t.open[string(id)]
	if f == nil || f.first {
		t.mu.Unlock()
		return
	}
	delete(t.open, string(id))
	t.mu.Unlock()
	f.abort(cause)
}

// cancelAll cancels every open request, without an answer.
func (t *inflight) cancelAll(cause error) {
	for _, f := range t.list() {
		f.abort(cause)
	}
}

func (t *inflight) list() []*flight {
	t.mu.Lock()
	defer t.mu.Unlock()
	fs := make([]*flight, 0, len(t.open))
	for _, f := range t.open {
		fs = append(fs, f)
	}
	return fs
}

// calls returns how many tool calls are open.
func (t *inflight) calls() int {
	n := 0
	for _, f := range t.list() {
		if f.call {
			n++
		}
	}
	return n
}
