package state

import (
	"bufio"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

const (
	// compactBytes is the size below which a log is left as it is.
	compactBytes = 8 << 20

	// compactPause is the time between a snapshot that failed and the next attempt.
	compactPause = 30 * time.Second

	// snapshotStep is how many values are looked up under one lock. A write waits that long at most.
	snapshotStep = 512
)

// errStopped ends a snapshot that is no longer needed.
var errStopped = errors.New("stopped")

// newSalt makes a number that no earlier file has.
func newSalt() uint64 { return rand.Uint64() }

// A snapshot reports how the writing of a snapshot file ended.
type snapshot struct {
	size int64 // bytes
	err  error
}

// compact begins a new log if the logs have outgrown what is alive, and writes a snapshot beside the writes, which go
// on in the new log. The snapshot takes each value as it finds it, some older and some newer than the new log's first
// records: these are applied over it, and each says the whole value.
func (w *writer) compact(alive int64) {
	if w.down != nil || w.shooting != nil || w.older+w.size < max(w.least, 2*alive) || w.m.now() < w.retry {
		return
	}
	w.settle()
	if w.down != nil {
		return
	}
	// What the old log holds is never synced again.
	if err := w.log.Sync(); err != nil {
		w.fail(err)
		return
	}
	log, head, err := w.newLog(w.head.generation + 1)
	if err != nil {
		w.lag(err)
		return
	}
	_ = w.log.Close() // it is synced
	w.older += w.size
	w.log, w.head, w.size, w.synced, w.dirty = log, head, headerSize, headerSize, false
	done := make(chan snapshot, 1)
	w.shooting = done
	go func() {
		size, err := w.shoot(head.generation, log)
		done <- snapshot{size, err}
	}()
}

func (w *writer) endShot(s snapshot) {
	w.shooting = nil
	if s.err != nil {
		w.lag(s.err)
		return
	}
	w.shot, w.older = s.size, 0
	w.health.change(func(s *Stats) { s.Disk, s.Lag = w.shot+w.size, nil })
}

// lag says that the log could not be compacted. It stays readable, and only grows.
func (w *writer) lag(err error) {
	w.retry = w.m.now() + int64(compactPause)
	w.health.change(func(s *Stats) { s.Lag = err })
}

// mend begins new files after the disk failed: a new log, which stays empty until the snapshot is on the disk, because
// what the old one holds is unknown. It keeps its number for the next attempt: the new one may be there, or not.
func (w *writer) mend() {
	w.settle()
	log, head, err := w.newLog(w.head.generation + 1)
	if err == nil {
		var size int64
		if size, err = w.shoot(head.generation, log); err == nil {
			_ = w.log.Close() // what it holds is not needed any more
			w.log, w.head, w.size, w.synced, w.dirty = log, head, headerSize, headerSize, false
			w.shot, w.older, w.down, w.retry = size, 0, nil, 0
			w.health.change(func(s *Stats) { s.Disk, s.Down, s.Lag = w.shot+w.size, nil, nil })
			return
		}
		_ = log.Close() // nothing was written
	}
	w.mendTimer.Reset(mendEvery)
}

// shoot writes the snapshot before the log of a generation, and removes the logs that it replaces. It may run beside
// the writes to that log.
func (w *writer) shoot(generation uint64, log file) (size int64, err error) {
	f, err := w.create(snapshotName + tempSuffix)
	if err != nil {
		return 0, err
	}
	size, err = w.copyTable(f, generation)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = w.disk.remove(snapshotName + tempSuffix) // it takes room, and the next one replaces it
		return 0, err
	}
	// The snapshot may hold what is only in the system's cache of the log. Without this a loss of power could keep it
	// and lose what was written before it.
	if err := log.Sync(); err != nil {
		return 0, err
	}
	if err := w.disk.rename(snapshotName+tempSuffix, snapshotName); err != nil {
		return 0, err
	}
	if err := w.disk.sync(); err != nil {
		return 0, err
	}
	return size, w.removeBefore(generation)
}

func (w *writer) removeBefore(generation uint64) error {
	names, err := w.disk.names()
	for _, name := range names {
		if n, isLog := logNumber(name); isLog && n < generation {
			err = errors.Join(err, w.disk.remove(name))
		}
	}
	return err
}

// copyTable writes all that is alive and returns the size of the file.
func (w *writer) copyTable(f file, generation uint64) (int64, error) {
	w.m.mu.Lock()
	h := header{kind: kindSnapshot, generation: generation, salt: newSalt(), last: w.m.table.last}
	w.m.mu.Unlock()
	out := &shot{h: h, out: bufio.NewWriterSize(io.NewOffsetWriter(f, 0), 256<<10), stop: w.stop}
	if _, err := out.out.Write(h.encode()); err != nil {
		return 0, err
	}
	out.size = headerSize
	if err := w.copyValues(out); err != nil {
		return 0, err
	}
	if err := w.copyStreams(out); err != nil {
		return 0, err
	}
	w.m.mu.Lock()
	last := w.m.table.last
	w.m.mu.Unlock()
	if err := out.add([]record{{op: opEnd, at: last}}); err != nil {
		return 0, err
	}
	return out.size, out.out.Flush()
}

// copyValues writes the values, some at a time. A map may change while it is ranged over, as long as the lock is free
// between the steps: keys that stay come once, and keys that come or go are in the log.
func (w *writer) copyValues(out *shot) error {
	step := make([]record, 0, snapshotStep)
	w.m.mu.Lock()
	now := w.m.now()
	for _, group := range w.m.table.groups {
		for key, e := range group {
			if !over(e.end, now) {
				step = append(step, record{opSet, e.rev, e.end, key, e.value})
			}
			if len(step) < snapshotStep {
				continue
			}
			w.m.mu.Unlock()
			if err := out.add(step); err != nil {
				return err
			}
			step = step[:0]
			w.m.mu.Lock()
		}
	}
	w.m.mu.Unlock()
	return out.add(step)
}

func (w *writer) copyStreams(out *shot) error {
	w.m.mu.Lock()
	names := make([]string, 0, len(w.m.table.streams))
	for name := range w.m.table.streams {
		names = append(names, name)
	}
	w.m.mu.Unlock()
	for _, name := range names {
		w.m.mu.Lock()
		var step []record
		if s := w.m.table.streams[name]; s != nil && !over(s.end, w.m.now()) {
			for _, i := range s.items {
				step = append(step, record{opAppend, i.at, s.end, name, i.value})
			}
		}
		w.m.mu.Unlock()
		if err := out.add(step); err != nil {
			return err
		}
	}
	return nil
}

// A shot is a snapshot that is being written.
type shot struct {
	h    header
	out  *bufio.Writer
	size int64
	buf  []byte
	stop <-chan struct{}
}

func (s *shot) add(records []record) error {
	select {
	case <-s.stop:
		return errStopped
	default:
	}
	for _, r := range records {
		s.buf = s.h.add(s.buf[:0], s.size, s.size, r)
		if _, err := s.out.Write(s.buf); err != nil {
			return err
		}
		s.size += int64(len(s.buf))
	}
	return nil
}
