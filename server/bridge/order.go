package bridge

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"codehand/server/jsonrpc"
)

// An order holds the work for a client's messages, and sends them in the order in which they came, as far as HTTP
// permits. Each message begins when the one before is written to its connection. Only initialize and
// notifications/initialized hold up the next one until they are done.
type order struct {
	broken <-chan struct{} // closed when writing to the client fails

	// Of the reading goroutine.
	last <-chan struct{} // closed when the next message may be sent

	mu     sync.Mutex // covers open, closed, and adding to work
	open   map[string]*request
	closed bool
	work   sync.WaitGroup // messages of the client that are not done with
	slots  chan struct{}  // bounds the messages that are no requests
}

func newOrder(broken <-chan struct{}) *order {
	first := make(chan struct{})
	close(first)
	return &order{broken: broken, last: first, open: map[string]*request{},
		slots: make(chan struct{}, jsonrpc.MaxInFlight)}
}

// close takes no more messages, and returns the requests that run.
func (o *order) close() []*request {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return slices.Collect(maps.Values(o.open))
}

// turn takes the next place in the order. The message begins when wait is closed, and calls pass when the next one may.
// Only for the reading goroutine.
func (o *order) turn() (wait <-chan struct{}, pass func()) {
	wait = o.last
	next := make(chan struct{})
	o.last = next
	return wait, sync.OnceFunc(func() { close(next) })
}

// start runs f, unless the connection ends already.
func (o *order) start(f func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.work.Go(f)
	return true
}

// aside runs f, which is for no request. When very many of these wait, so does the reading goroutine.
func (o *order) aside(f func()) {
	select {
	case o.slots <- struct{}{}:
	case <-o.broken:
		return
	}
	if !o.start(func() {
		defer func() { <-o.slots }()
		f()
	}) {
		<-o.slots
	}
}

// keep makes a request findable by its id.
func (o *order) keep(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[string(r.ID)] = r
}

// forget ends that, unless another request has the id by now.
func (o *order) forget(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[string(r.ID)] == r {
		delete(o.open, string(r.ID))
	}
}

// find returns the open request with this raw id, or nil.
func (o *order) find(id json.RawMessage) *request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[string(id)]
}
