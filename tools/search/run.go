package search

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/search/ignore"
)

const (
	// hangWait is how long a query that has ended waits for its workers. One that hangs in a system call is left
	// behind.
	hangWait = 50 * time.Millisecond
	// progressEvery is how often Progress is called at most.
	progressEvery = time.Second
)

// A run is one query at work.
type run struct {
	e        *Engine
	halt     *halt
	log      *ledger
	walk     *walk
	progress func(files, bytes int64)
	workers  int
	release  []func()
}

// newRun begins a query: from now on it ends by itself after within, or when ctx does.
func (e *Engine) newRun(ctx context.Context, scope Scope, within time.Duration,
	progress func(files, bytes int64)) *run {
	r := &run{e: e, halt: newHalt(), log: &ledger{}, progress: progress}
	r.workers = e.enter(r.halt)
	r.walk = &walk{
		scope: scope, halt: r.halt, log: r.log, skip: map[string]bool{},
		ex: excludes{outside: e.opts.Outside, home: e.opts.Home, configHome: e.opts.ConfigHome},
	}
	r.walk.wake = sync.NewCond(&r.walk.mu)
	for _, name := range scope.SkipDirs {
		r.walk.skip[name] = true
	}
	r.halt.onStop(r.walk.stopWaiting)
	timer := time.AfterFunc(within, func() { r.halt.stop(timeUp, nil) })
	done := context.AfterFunc(ctx, func() { r.halt.stop(cancelled, ctx.Err()) })
	r.release = []func(){func() { timer.Stop() }, func() { done() }, func() { e.leave(r.halt) }}
	return r
}

// end lets go of what newRun took. It must be called once.
func (r *run) end() {
	for _, f := range r.release {
		f()
	}
}

// tree walks a directory; begin makes the visitor of one worker. One worker starts, and others when there is more than
// it can do at once: a small directory is done before a second thread is awake. It takes d over.
func (r *run) tree(d folder, begin func() visitor) {
	w := r.walk
	var rules *ignore.Stack
	if !w.scope.Ignored {
		rules = w.rulesAbove()
	}
	w.stack = []item{{rules: rules}}
	w.top = (&shared{folder: d}).retain()
	w.memory = r.e.remember()
	defer w.top.release()
	w.spare.Store(int32(r.workers))
	c := newCrew()
	w.start = func() {
		top := w.top.retain()
		c.spawn(r, func() {
			defer top.release()
			w.work(begin())
		})
	}
	w.mu.Lock()
	w.hire(1)
	w.mu.Unlock()
	r.wait(c)
	w.leaveRest()
	r.e.learn(w)
}

// A crew is the workers of one query. Others may be added while one works.
type crew struct {
	working atomic.Int32
	done    chan struct{} // closed when the last one is
}

func newCrew() *crew { return &crew{done: make(chan struct{})} }

// spawn runs job on a goroutine that Close waits for, too.
func (c *crew) spawn(r *run, job func()) {
	r.e.working.Add(1)
	c.working.Add(1)
	go func() {
		defer r.e.working.Done()
		defer func() {
			if c.working.Add(-1) == 0 {
				close(c.done)
			}
		}()
		defer r.caught()
		job()
	}()
}

// wait waits for the workers, telling Progress meanwhile. Those that hang in a system call are left behind.
func (r *run) wait(c *crew) {
	var tick <-chan time.Time
	if r.progress != nil {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	stopped := r.halt.done
	var hang <-chan time.Time
	for {
		select {
		case <-c.done:
			return
		case <-tick:
			r.progress(r.log.soFar())
		case <-stopped:
			stopped = nil
			hang = time.After(hangWait)
		case <-hang:
			return
		}
	}
}

// caught turns the panic of a worker into the query's error.
func (r *run) caught() {
	if p := recover(); p != nil {
		r.halt.stop(failed, fmt.Errorf("search worker: %v\n%s", p, debug.Stack()))
	}
}

// coverage says how the query ended. The error is that of a query that has no answer.
func (r *run) coverage() (Coverage, error) {
	why, err := r.halt.reason()
	switch why {
	case cancelled, failed:
		return Coverage{}, err
	case timeUp:
		r.log.incomplete(Time)
	case spent:
		r.log.incomplete(Work)
	}
	return r.log.result(), nil
}

// may asks whether anyone may know of a file that would be reported.
func (w *walk) may(rel string, st stat) bool {
	if w.hidden(rel) {
		return false
	}
	return w.scope.SkipID == nil || st.links < 2 || !w.scope.SkipID(st.dev, st.ino)
}
