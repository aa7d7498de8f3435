package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// embedded is a memory that also writes its changes to a log. Its methods that write send the change to one goroutine,
// the writer; those that read are those of memory.
type embedded struct {
	*memory
	writer  *writer
	timeout time.Duration
	queue   chan *change // unbuffered: what was sent is with the writer
	stop    chan struct{}
	close   func() error // once
}

// openEmbedded opens the Store of a data directory.
func openEmbedded(ctx context.Context, o Options) (*embedded, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("store embedded: the data dir %q is not absolute", o.Dir)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store embedded: %w", err)
	}
	release, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	d, err := openDisk(filepath.Join(o.Dir, "store"))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store embedded: %w", err), release())
	}
	return openOn(ctx, d, release, o)
}

// openOn opens the Store that a disk holds, and calls release when it does not need it any more.
func openOn(ctx context.Context, d disk, release func() error, o Options) (*embedded, error) {
	s := &embedded{
		memory:  newMemory(MemoryOptions{SessionLife: o.SessionLife, MaxBytes: o.MaxBytes}),
		timeout: o.Timeout, queue: make(chan *change), stop: make(chan struct{}),
	}
	s.commit = s.send
	var err error
	if s.writer, err = openWriter(ctx, s.memory, d, o); err != nil {
		return nil, errors.Join(fmt.Errorf("store embedded: %w", err), release())
	}
	var writing sync.WaitGroup
	writing.Go(func() { s.writer.run(s.queue, s.stop) })
	s.close = sync.OnceValue(func() error {
		close(s.stop)
		writing.Wait()
		err := s.writer.finish() // a snapshot may still read the table
		return errors.Join(err, s.memory.Close(), release())
	})
	return s, nil
}

// send hands a change to the writer and waits, until ctx or the time ends: before the writer took it nothing was
// carried out, afterwards the outcome is unknown.
func (s *embedded) send(ctx context.Context, c *change) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if s.isClosed() {
		return false, ErrClosed
	}
	c.done = make(chan struct{})
	half := time.NewTicker(max(s.timeout/2, 1)) // while the machine stands still, however long, there is one tick
	defer half.Stop()
	for late := false; ; late = true {
		select {
		case s.queue <- c:
			return s.written(ctx, c, half.C, late)
		case <-s.stop:
			return false, ErrClosed
		case <-ctx.Done():
			return false, ctx.Err()
		case <-half.C:
			if late {
				return false, fmt.Errorf("%w: the log was busy for %v", ErrDown, s.timeout)
			}
		}
	}
}

// written waits for the end of a change that the writer has. late: the first half of the time is over.
func (s *embedded) written(ctx context.Context, c *change, half <-chan time.Time, late bool) (bool, error) {
	for ; ; late = true {
		select {
		case <-c.done:
			return c.ok, c.err
		case <-ctx.Done():
			return false, fmt.Errorf("%w: %w", ErrUnsure, ctx.Err())
		case <-half:
		}
		select {
		case <-c.done: // with the last tick
			return c.ok, c.err
		default:
			if late {
				return false, fmt.Errorf("%w: no answer from the disk for %v", ErrUnsure, s.timeout)
			}
		}
	}
}

// Ping returns why writes are refused.
func (s *embedded) Ping(ctx context.Context) error {
	if err := s.memory.Ping(ctx); err != nil {
		return err
	}
	return s.writer.health.read().Down
}

// Stats says how the Store is.
func (s *embedded) Stats() Stats {
	stats := s.memory.Stats()
	if stats.Down != nil {
		return stats
	}
	h := s.writer.health.read()
	stats.Disk, stats.Cut, stats.Down, stats.Lag = h.Disk, h.Cut, h.Down, h.Lag
	return stats
}

// Close writes nothing that was not written before, but waits until it is on the disk.
func (s *embedded) Close() error { return s.close() }

// health is what the writer says of itself. Safe for concurrent use.
type health struct {
	mu    sync.Mutex
	stats Stats
}

func (h *health) read() Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

func (h *health) change(f func(*Stats)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.stats)
}
