package search

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
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
}

// An Engine serves all sessions of a process. It is safe for concurrent use.
type Engine struct {
	opts    Options
	active  atomic.Int32  // queries that run now; they share the workers
	big     chan struct{} // holds one token: the right to a buffer over maxSmall
	working sync.WaitGroup
	ctx     context.Context // of the engine's life, not of a call: ended by Close
	cancel  context.CancelCauseFunc
}

// New returns an Engine. It touches no disk.
func New(o Options) *Engine {
	if o.Workers <= 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	e := &Engine{opts: o, big: make(chan struct{}, 1)}
	e.big <- struct{}{}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	return e
}

// Close ends all queries, which then return an error, and waits for their workers. It gives up after a second if a
// worker hangs in a system call, and says so.
func (e *Engine) Close() error {
	e.cancel(errClosed)
	done := make(chan struct{})
	go func() {
		e.working.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(closeWait):
		return errors.New("close search engine: a worker is stuck in a system call")
	}
}
