package search

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"codehand/tools/search/ignore"
)

const (
	// hangWait is how long a query that has ended waits for its workers. One that hangs in a system call is left behind.
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
func (e *Engine) newRun(ctx context.Context, scope Scope, within time.Duration, progress func(files, bytes int64)) *run {
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

// tree walks a directory with all workers; begin makes the visitor of one. It takes d over.
func (r *run) tree(d folder, begin func() func(d folder, rel, name string)) {
	w := r.walk
	var rules *ignore.Stack
	if !w.scope.Ignored {
		rules = w.rulesAbove()
	}
	w.stack = []item{{rules: rules}}
	w.top = (&shared{folder: d}).retain()
	defer w.top.release()
	visits := make([]func(folder, string, string), r.workers)
	w.visit = func(worker int, d folder, rel, name string) { visits[worker](d, rel, name) }
	jobs := make([]func(), r.workers)
	for i := range jobs {
		top := w.top.retain()
		visits[i] = begin()
		jobs[i] = func() {
			defer top.release()
			w.work(i)
		}
	}
	r.wait(jobs)
	w.leaveRest()
}

// wait runs jobs and waits for them, telling Progress meanwhile.
func (r *run) wait(jobs []func()) {
	var group sync.WaitGroup
	for _, job := range jobs {
		r.e.working.Add(1)
		group.Go(func() {
			defer r.e.working.Done()
			defer r.caught()
			job()
		})
	}
	finished := make(chan struct{})
	go func() {
		group.Wait()
		close(finished)
	}()
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
		case <-finished:
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
