package search

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"codehand/tools/search/index"
)

const (
	// maxJobs is how many queries may wait for what they read to be learned; what further ones read is learned when it
	// is read again.
	maxJobs = 4
	// forgetAfter is how long what was learned is kept without a query.
	forgetAfter = 30 * time.Minute
)

// A learner reads once more what queries have read, and remembers summaries of it. It reads only files that a query was
// allowed to read, one directory after the other, and lets queries go first. Its fields are under the Engine's mutex.
type learner struct {
	wake      *sync.Cond // a query ended, a job came, or the learner is done
	jobs      []job
	busy      bool // its goroutine lives
	broken    bool // by an error of ours; it learns nothing any more
	idle      *time.Timer
	holds     int
	ended     int // queries, ever
	forgotten int // times that everything was
}

// A job is what one query has read and nobody knows yet.
type job struct {
	top  folder
	dirs []wanted
}

// learn takes over what a query has read, if it was much.
func (e *Engine) learn(w *walk) {
	m := w.memory
	if m == nil {
		return
	}
	if files, _ := w.log.soFar(); files < m.care.least {
		return
	}
	m.mu.Lock()
	dirs := m.wanted
	m.wanted = nil
	m.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.learner
	if len(dirs) == 0 || e.closed || l.broken || len(l.jobs) >= maxJobs {
		return
	}
	top, err := w.top.again()
	if err != nil {
		return // no descriptor is left: the next query may find one
	}
	l.jobs = append(l.jobs, job{top, dirs})
	if !l.busy {
		l.busy = true
		e.working.Add(1)
		go e.study()
	}
}

// stopLearning drops the jobs that wait. mu is held.
func (e *Engine) stopLearning() {
	l := &e.learner
	for _, j := range l.jobs {
		j.top.close()
	}
	l.jobs = nil
	if l.idle != nil {
		l.idle.Stop()
	}
	l.wake.Broadcast()
}

// study is the goroutine of the learner: it ends when there is nothing to learn.
func (e *Engine) study() {
	defer e.working.Done()
	whole := false
	defer func() {
		if whole {
			return
		}
		_ = recover() // what was learned is forgotten, and searches go on without
		e.mu.Lock()
		defer e.mu.Unlock()
		e.learner.broken, e.learner.busy = true, false
		e.forget()
	}()
	r := reader{e: e}
	for {
		e.mu.Lock()
		l := &e.learner
		if len(l.jobs) == 0 {
			l.busy = false // under the same lock, or a job that comes now would wait for nobody
			l.wake.Broadcast()
			e.mu.Unlock()
			whole = true
			return
		}
		j := l.jobs[0]
		l.jobs = l.jobs[1:]
		r.of = l.forgotten
		e.mu.Unlock()
		r.job(j)
	}
}

// turn lets queries go first: it waits until none is at work, or until one has ended. false: the engine is closed, or
// what is learned is wanted no more.
func (e *Engine) turn(of int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.learner
	for before := l.ended; len(e.active) > 0 && l.ended == before && !e.closed; {
		l.wake.Wait()
	}
	return !e.closed && l.forgotten == of
}

// A reader learns files. It belongs to the learner.
type reader struct {
	e   *Engine
	of  int // learner.forgotten when the job was taken
	buf []byte
	sum index.Summarizer
}

func (r *reader) job(j job) {
	defer j.top.close()
	for _, w := range j.dirs {
		if !r.e.turn(r.of) || r.e.table.Full() {
			return
		}
		r.dir(j.top, w)
	}
}

// dir learns files of one directory, if it is still what it was when it was listed.
func (r *reader) dir(top folder, w wanted) {
	d, err := top.again()
	if w.rel != "" && err == nil {
		d.close()
		d, err = top.below(w.rel)
	}
	if err != nil {
		return
	}
	defer d.close()
	if now, err := d.stamp(); err != nil || now != w.in.Stamp {
		return
	}
	var files []index.Lesson
	for i, number := range w.numbers {
		if i > 0 && !r.e.turn(r.of) {
			return
		}
		if f, ok := r.file(d, w.in, number); ok {
			files = append(files, f)
		}
	}
	r.e.table.Learn(w.in, files)
}

// file reads a file. false: nothing that would last can be said about it.
func (r *reader) file(d folder, in *index.Dir, number int) (index.Lesson, bool) {
	out := index.Lesson{Number: number, Kind: index.Unfit}
	began := time.Now()
	f, err := d.open(in.Entries[number].Name)
	if err != nil {
		return out, false
	}
	defer f.close()
	out.Stamp = f.stat.stamp()
	if !out.Stamp.Before(began.Add(-r.e.care.files).UnixNano()) || out.Stamp.Dev != in.Stamp.Dev && !f.trusts() {
		return out, false
	}
	if f.size > maxLearned {
		return out, true
	}
	if int64(len(r.buf)) < f.size+1 {
		r.buf = make([]byte, max(f.size+1, smallBinary))
	}
	n, err := io.ReadFull(f, r.buf[:f.size+1])
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || int64(n) != f.size {
		return out, false // it grew or shrank meanwhile
	}
	content := r.buf[:n]
	if now, err := f.now(); err != nil || now.stamp() != out.Stamp {
		return out, false
	}
	if out.Kind = kindOf(content); out.Kind == index.Text || out.Kind == index.Binary {
		out.Summary = r.sum.Append(nil, content)
	}
	return out, true
}

// kindOf says what a scanner makes of a content.
func kindOf(content []byte) index.Content {
	if utf16Order(content) != nil {
		return index.Unfit // its text is not its bytes
	}
	switch nul := bytes.IndexByte(bytes.TrimPrefix(content, []byte(utf8Mark)), 0); {
	case nul < 0:
		return index.Text
	case nul >= binaryHead:
		return index.Unfit // searched up to there, and noted each time
	case len(content) < smallBinary:
		return index.Binary
	}
	return index.Large
}

// Settle waits until all that queries have read is learned: for tests and benchmarks.
func (e *Engine) Settle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.learner.busy {
		e.learner.wake.Wait()
	}
}

// usage counts what memory was good for.
type usage struct{ listings, ruledOut, calm atomic.Int64 }

// Stats are figures of what is remembered.
type Stats struct {
	index.Stats
	Listings, RuledOut int // directories and files that were not read, ever
	Calm               int // of these files, those that were not looked at
	Watches            int // directories that are watched
}

// Stats counts.
func (e *Engine) Stats() Stats {
	s := Stats{Listings: int(e.usage.listings.Load()), RuledOut: int(e.usage.ruledOut.Load()),
		Calm: int(e.usage.calm.Load())}
	if e.table != nil {
		s.Stats = e.table.Stats()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Watches = e.watch.watched()
	return s
}

// Hold says that a session uses the engine. What is remembered is forgotten when the last one lets go, which it must do
// once.
func (e *Engine) Hold() (release func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.learner.holds++
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.learner.holds--; e.learner.holds == 0 {
			e.forget()
		}
	})
}

// forget drops all that is remembered, and what would be learned. mu is held.
func (e *Engine) forget() {
	e.stopLearning()
	e.learner.forgotten++
	e.pages.clear()
	if e.table != nil {
		e.table.Clear()
	}
	e.stopWatching()
}

// watching returns what tells of changes; nil: nothing does. It is made for the first query that can have a use for it:
// one of a tree of which something is remembered.
func (e *Engine) watching() *watcher {
	if e.table.Empty() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watch == nil && !e.blind && !e.closed {
		e.watch = newWatcher()
		e.blind = e.watch == nil
	}
	return e.watch
}

// stopWatching gives all watches back. mu is held.
func (e *Engine) stopWatching() {
	e.watch.close()
	e.watch = nil
}

// forgetLater has everything forgotten if no query comes for long. mu is held.
func (e *Engine) forgetLater() {
	switch l := &e.learner; {
	case e.table == nil || e.closed:
	case l.idle == nil:
		l.idle = time.AfterFunc(forgetAfter, func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.active) == 0 {
				e.forget()
			}
		})
	default:
		l.idle.Reset(forgetAfter)
	}
}
