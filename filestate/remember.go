package filestate

import (
	"context"
	"time"
)

// rememberWait is how long the memory may take to note a change that is already made.
const rememberWait = 5 * time.Second

// remember notes a change that was made, and tells the caller. It always does, even if nobody waits
// any more; a memory that fails costs the session a read.
func (l *Ledger) remember(ctx context.Context, w *work) Change {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberWait)
	defer cancel()
	if w.edit.remove {
		return l.forgetRemoved(ctx, w)
	}
	size := int64(len(w.next))
	c := Change{Path: w.path, New: w.next, Durable: true, Sums: Sums{After: w.after.sum()}}
	next := &record{Path: w.path, Hash: w.after, Size: size, Spans: wholeOf(size), View: noView}

	defer l.records.lock(w.path)()
	fresh, err := l.records.load(ctx, w.path)
	before := w.known
	was := fresh.of(w.old, w.base)
	fresh = fresh.of(w.next, w.after)
	// A read of the new content may have been quicker.
	quicker := fresh != nil && fresh.Hash == w.after && was.Hash != w.base
	if err == nil && !quicker {
		before = was // a read of the old content may have added to it
	}
	if w.file != nil {
		spans := w.coverageBefore(before)
		c.Old, c.Before = w.old, w.base.version(isWhole(spans, int64(len(w.old))))
		c.Sums.Before = w.base.sum()
		next.Own = replaced(before, w.base)
		next.Ranges = w.ranges(before)
		if !w.edit.Whole {
			next.Spans = moved(w.old, w.next, spans)
		}
	}
	switch {
	case w.same && fresh != nil && fresh.Hash == w.after:
		next.Own, next.Ranges, next.Parts, next.View, next.Again = fresh.Own, fresh.Ranges, fresh.Parts, fresh.View, fresh.Again
	case w.same:
		next.Own, next.Ranges = nil, nil
	case quicker:
		next.Spans = normal(append(next.Spans, fresh.Spans...), size)
		next.Parts, next.View, next.Again = fresh.Parts, fresh.View, fresh.Again
	}
	c.After = next.version()
	if w.same {
		c.Before = c.After
	} else {
		w.report(&c, l.fast)
	}
	next.Stamp = w.stamp
	l.contents.put(w.after, w.next)
	c.Forgotten = err != nil || l.records.save(ctx, next) != nil
	return c
}

// report says how well the change was written.
func (w *work) report(c *Change, fast bool) {
	c.Lost, c.Links, c.SyncErr, c.InPlace = w.lost, w.links, w.sync, w.inPlace
	c.Durable = !fast && w.sync == nil
}

// forgetRemoved notes that a file was removed.
func (l *Ledger) forgetRemoved(ctx context.Context, w *work) Change {
	c := w.tried()
	if w.file != nil {
		w.report(&c, l.fast)
	}
	defer l.records.lock(w.path)()
	c.Forgotten = l.records.forget(ctx, w.path) != nil
	return c
}

// tried is the change that a work would make.
func (w *work) tried() Change {
	c := Change{Path: w.path, Durable: true}
	if w.file != nil {
		c.Old, c.Before, c.Sums.Before = w.old, w.base.version(true), w.base.sum()
	}
	if !w.edit.remove {
		c.New, c.After, c.Sums.After = w.next, w.after.version(true), w.after.sum()
	}
	return c
}
