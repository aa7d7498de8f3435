package search

import (
	"sync"
	"sync/atomic"
)

// Why a query ends before its walk does.
type ending int

const (
	running   ending = iota
	cancelled        // by the caller or by Close
	timeUp           // Within is over
	enough           // the answer is fixed, and CountFor is over
	spent            // MaxWork is done
	failed           // a worker met an error of ours
)

// A halt tells all workers of a query to stop. They look at it before each file, each chunk of one and each directory.
type halt struct {
	flag atomic.Bool
	mu   sync.Mutex
	why  ending
	err  error
	done chan struct{} // closed by stop
	then []func()
}

func newHalt() *halt { return &halt{done: make(chan struct{})} }

// stopped is cheap: one atomic load.
func (h *halt) stopped() bool { return h.flag.Load() }

// stop ends the query; the first reason stays.
func (h *halt) stop(why ending, err error) {
	h.mu.Lock()
	if h.why != running {
		h.mu.Unlock()
		return
	}
	h.why, h.err = why, err
	h.flag.Store(true)
	close(h.done)
	then := h.then
	h.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// reason says why, if the query was stopped.
func (h *halt) reason() (ending, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.why, h.err
}

// onStop has f called when the query is stopped, at once if it is.
func (h *halt) onStop(f func()) {
	h.mu.Lock()
	h.then = append(h.then, f)
	late := h.why != running
	h.mu.Unlock()
	if late {
		f()
	}
}
