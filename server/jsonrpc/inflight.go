package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
)

// MaxInFlight is how many requests one scope may have open. A client that sends more without reading answers would
// otherwise grow our memory without bound.
const MaxInFlight = 1024

// ErrAnswered says that a request has its answer, or will get none, so nothing more may be sent for it.
var ErrAnswered = errors.New("request is answered or cancelled")

// The causes of a cancel.
var (
	ErrCancelled = errors.New("cancelled by the client")
	ErrClosed    = errors.New("the connection ends")
)

// What a flight can be.
const (
	flightOpen int32 = iota
	flightAnswered
	flightCancelled
)

// A Flight is one request from its arrival to its answer.
type Flight struct {
	ID     json.RawMessage // as sent
	Call   bool            // a tools/call
	First  bool            // an initialize: its cancel is ignored
	Stream bool            // a listen: the end of its connection is its end, with a result
	Orphan atomic.Bool     // it may finish when its client is gone: it may have begun to change something
	Cancel context.CancelCauseFunc

	// state is changed to answered only by who has the writer's turn, so a note is never written after the answer, and
	// a cancel that comes while the answer waits for a client that does not read still counts.
	state atomic.Int32
}

// Waits says whether the request still waits for its answer.
func (f *Flight) Waits() bool { return f.state.Load() == flightOpen }

// Cancelled says whether it was cancelled before its answer was written.
func (f *Flight) Cancelled() bool { return f.state.Load() == flightCancelled }

// Abort cancels the request, if it still waits: it gets no answer and no further notification. Its id is free at once.
func (f *Flight) Abort(cause error) {
	if f.state.CompareAndSwap(flightOpen, flightCancelled) {
		f.Cancel(cause)
	}
}

// Settle says that the answer is about to be written. It is false the second time, and after a cancel.
func (f *Flight) Settle() bool { return f.state.CompareAndSwap(flightOpen, flightAnswered) }

// An InFlight is the table of one scope's open requests, by raw id. It is safe for concurrent use.
type InFlight struct {
	mu      sync.Mutex
	open    map[string]*Flight
	n       int           // flights whose goroutine has not ended, cancelled ones too
	closed  bool          // no more are taken
	drained chan struct{} // closed when n is 0 and no more are taken; nil until close
}

// The reasons for which add refuses.
var (
	ErrIDInUse = errors.New("request id already in use")
	errTooMany = errors.New("too many requests in flight")
)

// Add enters a request. The error is ErrClosed, ErrIDInUse, or that too many are open.
func (t *InFlight) Add(f *Flight) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if o := t.open[string(f.ID)]; o != nil && o.Waits() { // one whose answer is written has given its id back
		return ErrIDInUse
	}
	if t.n >= MaxInFlight {
		return errTooMany
	}
	if t.open == nil {
		t.open = map[string]*Flight{}
	}
	t.open[string(f.ID)] = f
	t.n++
	return nil
}

// Done forgets a flight whose goroutine ends.
func (t *InFlight) Done(f *Flight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.open[string(f.ID)] == f {
		delete(t.open, string(f.ID))
	}
	if t.closed && t.n == 0 {
		close(t.drained)
	}
}

// Close takes no more requests. The channel is closed when all have ended.
func (t *InFlight) Close() <-chan struct{} {
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

// Closing says whether close was called.
func (t *InFlight) Closing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// Cancel cancels the request with this raw id: no answer and no further notification. Its id is free at once. An
// unknown or answered id is ignored, since some clients cancel every finished call, and so is that of an initialize.
func (t *InFlight) Cancel(id json.RawMessage, cause error) {
	t.mu.Lock()
	f := t.open[string(id)]
	if f == nil || f.First {
		t.mu.Unlock()
		return
	}
	delete(t.open, string(id))
	t.mu.Unlock()
	f.Abort(cause)
}

// CancelAll cancels every open request, without an answer.
func (t *InFlight) CancelAll(cause error) {
	for _, f := range t.List() {
		f.Abort(cause)
	}
}

// List returns the open requests, in no order.
func (t *InFlight) List() []*Flight {
	t.mu.Lock()
	defer t.mu.Unlock()
	fs := make([]*Flight, 0, len(t.open))
	for _, f := range t.open {
		fs = append(fs, f)
	}
	return fs
}

// Calls returns how many tool calls are open.
func (t *InFlight) Calls() int {
	n := 0
	for _, f := range t.List() {
		if f.Call {
			n++
		}
	}
	return n
}

// EndStreams ends the listens: each gets its result.
func (t *InFlight) EndStreams(cause error) {
	for _, f := range t.List() {
		if f.Stream {
			f.Cancel(cause)
		}
	}
}
