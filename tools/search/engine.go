package search

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"codehand/tools/search/index"
)

// maxWorkers bounds the goroutines of one query: beyond it the disk is what one waits for.
const maxWorkers = 16

// closeWait is how long Close waits for workers that hang in a system call, as on a dead network mount.
const closeWait = time.Second

// errClosed ends the queries of an engine that is closed.
var errClosed = errors.New("the search engine is closed")

// Options of an Engine. Zero values mean what the comment says.
type Options struct {
	Workers    int    // 0: min(GOMAXPROCS, 16)
	Outside    bool   // read ignore files above a root, up to the top of the repository that it lies in
	Home       string // of the user's global git configuration; "": none
	ConfigHome string // XDG_CONFIG_HOME or its default; "": none
	// Memory is how much is remembered of trees between searches, in bytes; 0: nothing. See remember.go.
	Memory int64
}

// An Engine serves all sessions of a process. It is safe for concurrent use.
type Engine struct {
	opts    Options
	big     chan struct{}  // holds one token: the right to a buffer over maxSmall
	working sync.WaitGroup // workers of all queries, and the learner
	table   *index.Table   // nil: nothing is remembered
	pages   pages
	care    care
	usage   usage

	mu      sync.Mutex
	active  map[*halt]bool // queries that run now; they share the workers
	closed  bool
	learner learner
	watch   *watcher // nil: not needed yet, or blind
	blind   bool     // the system tells of no changes
}

// New returns an Engine. It touches no disk.
func New(o Options) *Engine {
	if o.Workers <= 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	e := &Engine{opts: o, big: make(chan struct{}, 1), active: map[*halt]bool{}, care: usualCare}
	e.learner.wake = sync.NewCond(&e.mu)
	if o.Memory > 0 {
		e.table = index.NewTable(o.Memory)
	}
	e.big <- struct{}{}
	return e
}

// Close ends all queries, which then return an error, and waits for their workers. It gives up after a second if a
// worker hangs in a system call, and says so.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.stopLearning()
	e.stopWatching()
	active := slices.Collect(maps.Keys(e.active))
	e.mu.Unlock()
	for _, h := range active {
		h.stop(cancelled, errClosed)
	}
	done := make(chan struct{})
	go func() {
		e.working.Wait()
		close(done)
	}()
	for range 2 { // a machine that stands still for all of the time loses one half
		select {
		case <-done:
			return nil
		case <-time.After(closeWait / 2):
		}
	}
	return errors.New("close search engine: a worker is stuck in a system call")
}

// enter takes a query in and says how many workers it gets: its share of all. A closed engine stops it at once.
func (e *Engine) enter(h *halt) (workers int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.active[h] = true
	if e.closed {
		h.stop(cancelled, errClosed)
	}
	n := len(e.active)
	return max(1, (e.opts.Workers+n-1)/n)
}

func (e *Engine) leave(h *halt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.active, h)
	e.learner.ended++
	e.learner.wake.Broadcast()
	e.forgetLater()
}
