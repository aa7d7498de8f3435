package filestate

import (
	"context"
	"time"

	"codehand/filestate/seen"
)

// rememberWait is how long the memory may take to note a change that is already made.
const rememberWait = 5 * time.Second

// remember notes a change that was made, and returns it for the caller. It notes it even if the caller no longer waits.
// A memory that fails costs the session a read.
func (l *Ledger) remember(ctx context.Context, w *work) Change {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberWait)
	defer cancel()
	if w.edit.Remove {
		return l.forgetRemoved(ctx, w)
	}
	c := Change{Path: w.path, New: w.next, Durable: true, Sums: Sums{After: w.after.Hex()}}
	if w.file != nil {
		c.Old, c.Sums.Before = w.old, w.base.Hex()
	}
	w.shows(&c)
	defer l.records.Lock(w.path)()
	now, err := l.records.Load(ctx, w.path)
	made := seen.Change{
		Path: w.path, Claim: w.edit.claim(), Known: w.known, Old: w.content(),
		New: w.made(), Stamp: w.stamp,
	}
	if w.cut != nil {
		made.Splices = w.cut.List
	}
	if w.edit.Touches != nil {
		_, made.Wrote = w.edit.Touches()
	}
	next, before := made.Record(now, err != nil)
	c.Before, c.After = before, next.Version()
	if e := w.since; e != nil {
		c.Since = &StaleError{Path: w.path, Was: e.Was, Old: e.Old, New: w.next, stamp: w.stamp,
			Now: seen.VersionOf(w.after, true)}
	}
	if w.same {
		c.Before = c.After
	} else {
		w.report(&c, l.fast)
	}
	if w.cut == nil {
		l.contents.Put(w.after, w.next)
	}
	if w.partly {
		c.Forgotten = l.records.Forget(ctx, w.path) != nil
		return c
	}
	c.Forgotten = err != nil || l.records.Save(ctx, next) != nil
	return c
}

// report says how well the change was written.
func (w *work) report(c *Change, fast bool) {
	c.Lost, c.Links, c.SyncErr, c.InPlace = w.lost, w.links, w.sync, w.inPlace
	c.Durable = !fast && w.sync == nil
	c.Shut = w.file != nil && !w.edit.Remove && w.info.Mode().Perm()&0o222 == 0
}

// forgetRemoved notes that a file was removed.
func (l *Ledger) forgetRemoved(ctx context.Context, w *work) Change {
	c := w.tried()
	if w.file != nil {
		w.report(&c, l.fast)
	}
	defer l.records.Lock(w.path)()
	c.Forgotten = l.records.Forget(ctx, w.path) != nil
	return c
}

// tried is the change that a work would make.
func (w *work) tried() Change {
	c := Change{Path: w.path, Durable: true}
	if w.file != nil {
		c.Old, c.Before, c.Sums.Before = w.old, seen.VersionOf(w.base, true), w.base.Hex()
	}
	if !w.edit.Remove {
		c.New, c.After, c.Sums.After = w.next, seen.VersionOf(w.after, true), w.after.Hex()
	}
	w.shows(&c)
	return c
}

// shows gives a change what there is to show of a large file.
func (w *work) shows(c *Change) {
	if w.cut != nil {
		c.Splices, c.Old, c.New = w.cut.List, []byte{}, []byte{}
		for _, s := range w.cut.List {
			c.Old, c.New = append(c.Old, s.Old...), append(c.New, s.New...)
		}
	}
}
