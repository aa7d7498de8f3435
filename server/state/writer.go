package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// batchChanges and batchBytes are what one write to the log takes together at most: enough that many callers share
	// the cost of a sync, not so much that the first waits for the last.
	batchChanges = 64
	batchBytes   = 1 << 20

	// mendEvery is the time between attempts to begin a new log after the disk failed.
	mendEvery = time.Second
)

// A writer is the log of an embedded Store. One goroutine runs it; health is for the others.
//
// Whatever goes wrong, what the table holds is what was written, and nothing else: a write that fails is cut off the
// log again. If that fails too, or a sync does, then the contents of the files are unknown (the system may have dropped
// what it could not write, and report success the next time). Then the writer is down: it refuses everything until it
// has written all that the table holds into new files.
type writer struct {
	m      *memory
	disk   disk
	every  time.Duration // between syncs; 0: with each write
	least  int64         // bytes of the logs below which they are not compacted
	health health

	log    file
	head   header
	size   int64 // bytes of the log
	synced int64 // bytes of it that are on the disk for certain
	older  int64 // bytes of the logs before it, which a snapshot would replace
	shot   int64 // bytes of the snapshot
	dirty  bool  // something was written since the last sync began
	down   error

	buf       []byte
	next      *change       // taken, but not of the last batch
	now       chan struct{} // closed: ready at once
	syncTimer *time.Timer
	mendTimer *time.Timer
	syncing   chan synced   // not nil: a sync runs
	shooting  chan snapshot // not nil: a snapshot is written
	retry     int64         // when the next snapshot may be tried, in nanoseconds as m.now
	stop      <-chan struct{}
}

// synced reports how a sync ended.
type synced struct {
	size int64 // of the log when it began
	err  error
}

// run carries out changes until stop is closed. It answers the changes that it has accepted before it returns.
func (w *writer) run(queue <-chan *change, stop <-chan struct{}) {
	w.stop = stop
	for {
		in, again := queue, chan struct{}(nil)
		if w.next != nil {
			in, again = nil, w.now
		}
		select {
		case c := <-in:
			w.batch(c, queue)
		case <-again:
			c := w.next
			w.next = nil
			w.batch(c, queue)
		case <-w.syncTimer.C:
			w.startSync()
		case s := <-w.syncing:
			w.endSync(s)
		case s := <-w.shooting:
			w.endShot(s)
		case <-w.mendTimer.C:
			w.mend()
		case <-stop:
			if w.next != nil {
				w.answer(ErrClosed, w.next)
			}
			return
		}
	}
}

// batch carries out a change, and with it those that wait already: they are prepared together, written with one write,
// and applied together.
func (w *writer) batch(first *change, queue <-chan *change) {
	if w.down != nil {
		w.answer(w.down, first)
		return
	}
	batch := w.gather(first, queue)
	w.m.mu.Lock()
	w.m.table.expire(w.m.now())
	for _, c := range batch {
		if c.err = w.m.table.prepare(c, w.m.now()); c.err != nil {
			c.void = true
		}
	}
	w.m.mu.Unlock()

	w.buf = w.buf[:0]
	for _, c := range batch {
		if !c.void {
			w.buf = w.head.add(w.buf, w.size, w.synced, record{c.op, c.at, c.end, c.name, c.value})
		}
	}
	if err := w.write(w.buf); err != nil {
		for _, c := range batch {
			if !c.void {
				c.ok, c.err, c.void = false, err, true
			}
		}
	}

	w.m.mu.Lock()
	w.m.apply(batch...)
	alive := w.m.table.used
	w.m.mu.Unlock()
	w.health.change(func(s *Stats) { s.Disk = w.shot + w.older + w.size })
	for _, c := range batch {
		close(c.done)
	}
	w.compact(alive)
}

func (w *writer) answer(err error, c *change) {
	c.ok, c.err = false, err
	close(c.done)
}

// gather takes the changes that wait, one of each name: the second of a name depends on what the first does.
func (w *writer) gather(first *change, queue <-chan *change) []*change {
	batch, bytes := []*change{first}, len(first.value)
	for len(batch) < batchChanges && bytes < batchBytes {
		select {
		case c := <-queue:
			for _, other := range batch {
				if other.name == c.name {
					w.next = c
					return batch
				}
			}
			batch, bytes = append(batch, c), bytes+len(c.value)
		default:
			return batch
		}
	}
	return batch
}

// write appends records to the log, whole or not at all: ErrDown, ErrFull; ErrUnsure if the log could not be cut.
func (w *writer) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := w.log.WriteAt(b, w.size)
	if err == nil && w.every == 0 {
		err = w.log.Sync()
	}
	if err != nil {
		kind := ErrDown
		if isFull(err) {
			kind = ErrFull
		}
		if cut := w.log.Truncate(w.size); cut != nil {
			kind = ErrUnsure
			w.fail(errors.Join(err, cut))
		}
		return fmt.Errorf("%w: %w", kind, err)
	}
	w.size += int64(len(b))
	switch {
	case w.every == 0:
		w.synced = w.size
	case !w.dirty:
		w.dirty = true
		w.syncTimer.Reset(w.every)
	}
	return nil
}

// startSync syncs beside the writes, which go on.
func (w *writer) startSync() {
	if !w.dirty { // a new log was begun meanwhile
		return
	}
	if w.syncing != nil { // the disk is slower than the interval
		w.syncTimer.Reset(w.every)
		return
	}
	w.dirty = false
	done, log, size := make(chan synced, 1), w.log, w.size
	w.syncing = done
	go func() { done <- synced{size, log.Sync()} }()
}

func (w *writer) endSync(s synced) {
	w.syncing = nil
	if s.err != nil {
		w.fail(s.err)
		return
	}
	w.synced = s.size
}

// settle waits for the sync and the snapshot that run beside the writes.
func (w *writer) settle() {
	if w.syncing != nil {
		w.endSync(<-w.syncing)
	}
	if w.shooting != nil {
		w.endShot(<-w.shooting)
	}
}

// fail refuses all writes until new files are written.
func (w *writer) fail(err error) {
	if w.down != nil {
		return
	}
	w.down = fmt.Errorf("%w: %w", ErrDown, err)
	w.health.change(func(s *Stats) { s.Down = w.down })
	w.mendTimer.Reset(mendEvery)
}

// finish waits for what runs beside, syncs and closes the log. run has returned.
func (w *writer) finish() error {
	w.settle()
	w.syncTimer.Stop()
	w.mendTimer.Stop()
	err := w.down
	if err == nil {
		err = w.log.Sync()
	}
	return errors.Join(err, w.log.Close())
}

// openWriter reads the files of a disk into the table and opens the last log for more.
func openWriter(ctx context.Context, m *memory, d disk, o Options) (*writer, error) {
	w := &writer{
		m: m, disk: d, every: o.Sync, least: cmp.Or(o.compact, compactBytes), now: make(chan struct{}),
		syncTimer: time.NewTimer(time.Hour), mendTimer: time.NewTimer(time.Hour),
	}
	close(w.now)
	w.syncTimer.Stop()
	w.mendTimer.Stop()
	if err := w.load(ctx); err != nil {
		if w.log != nil {
			err = errors.Join(err, w.log.Close())
		}
		return nil, err
	}
	return w, nil
}
