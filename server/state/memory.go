package state

import (
	"bytes"
	"context"
	"sync"
	"time"
)

// defaultMaxBytes is how much a Store holds if nothing else is configured.
const defaultMaxBytes = 4 << 30

// MemoryOptions of a memory Store.
type MemoryOptions struct {
	SessionLife time.Duration    // of family sess; 0: 30 days
	MaxBytes    int64            // as in Options; 0: 4 GiB
	Now         func() time.Time // nil: time.Now
}

// NewMemory returns a Store that lives in this process and dies with it. It is a Stater.
func NewMemory(o MemoryOptions) Store { return newMemory(o) }

func newMemory(o MemoryOptions) *memory {
	if o.SessionLife <= 0 {
		o.SessionLife = defaultSessionLife
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	start := o.Now()
	p := newPlan(o.SessionLife)
	m := &memory{
		// Time passes as it does for the process, so that no step of the clock ends a life early.
		now:  func() int64 { return start.UnixNano() + int64(o.Now().Sub(start)) },
		plan: p,
		// Revisions and positions of an earlier process are never used again.
		table:  newTable(p, o.MaxBytes, uint64(start.UnixNano())),
		closed: make(chan struct{}),
	}
	m.commit = m.change
	return m
}

// memory is a Store in a table.
type memory struct {
	now    func() int64 // nanoseconds of the Unix clock
	plan   plan
	closed chan struct{}
	commit func(context.Context, *change) (bool, error) // carries out one write; ok is that of Swap

	mu       sync.Mutex // covers the rest
	table    *table
	watchers []*watcher
}

// enter takes the lock for one operation, removes what is over, and says when that is. The caller unlocks if err is
// nil.
func (m *memory) enter(ctx context.Context) (now int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	if m.isClosed() {
		m.mu.Unlock()
		return 0, ErrClosed
	}
	now = m.now()
	m.table.expire(now)
	return now, nil
}

func (m *memory) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

func (m *memory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if _, err := m.plan.key(key); err != nil {
		return nil, 0, err
	}
	now, err := m.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	e := m.table.value(key, now)
	m.mu.Unlock()
	return bytes.Clone(e.value), e.rev, nil
}

func (m *memory) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	for _, key := range keys {
		if _, err := m.plan.key(key); err != nil {
			return nil, nil, err
		}
	}
	values, revs := make([][]byte, len(keys)), make([]uint64, len(keys))
	now, err := m.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i, key := range keys {
		e := m.table.value(key, now)
		values[i], revs[i] = e.value, e.rev
	}
	m.mu.Unlock()
	for i, value := range values { // an entry is never changed
		values[i] = bytes.Clone(value)
	}
	return values, revs, nil
}

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	c, err := m.newSet(key, value)
	if err != nil {
		return err
	}
	_, err = m.commit(ctx, c)
	return err
}

func (m *memory) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	c, err := m.newSet(key, value)
	if err != nil {
		return false, err
	}
	c.swap, c.rev = true, rev
	return m.commit(ctx, c)
}

func (m *memory) newSet(key string, value []byte) (*change, error) {
	f, err := m.plan.key(key)
	if err != nil {
		return nil, err
	}
	if err := checkValue(value, maxValue); err != nil {
		return nil, err
	}
	return &change{op: opSet, name: key, value: bytes.Clone(value), life: f.Life}, nil
}

func (m *memory) Delete(ctx context.Context, key string) error {
	if _, err := m.plan.key(key); err != nil {
		return err
	}
	_, err := m.commit(ctx, &change{op: opDelete, name: key})
	return err
}

func (m *memory) Append(ctx context.Context, name string, value []byte) error {
	f, err := m.plan.stream(name)
	if err != nil {
		return err
	}
	if err := checkValue(value, maxStreamValue); err != nil {
		return err
	}
	_, err = m.commit(ctx, &change{op: opAppend, name: name, value: bytes.Clone(value), life: f.life, most: f.length})
	return err
}

// change makes a change at once.
func (m *memory) change(ctx context.Context, c *change) (bool, error) {
	now, err := m.enter(ctx)
	if err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	if err := m.table.prepare(c, now); err != nil {
		return false, err
	}
	m.apply(c)
	return c.ok, nil
}

// apply makes prepared changes, all that there are, and tells the Watches. The caller holds mu.
func (m *memory) apply(changes ...*change) {
	m.table.promised = 0
	for _, c := range changes {
		if c.void {
			continue
		}
		m.table.apply(c)
		if c.op != opAppend {
			m.tell(c.name)
		}
	}
}

func (m *memory) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := m.plan.prefix(prefix); err != nil {
		return nil, err
	}
	now, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	keys := m.table.below(prefix, now)
	return keys[:min(len(keys), maxKeys)], nil
}

func (m *memory) Tail(ctx context.Context, name string, after uint64, max int) ([][]byte, uint64, error) {
	if _, err := m.plan.stream(name); err != nil {
		return nil, after, err
	}
	now, err := m.enter(ctx)
	if err != nil {
		return nil, after, err
	}
	defer m.mu.Unlock()
	values, last := m.table.tail(name, after, max, now)
	return values, last, nil
}

func (m *memory) Ping(ctx context.Context) error {
	if _, err := m.enter(ctx); err != nil {
		return err
	}
	m.mu.Unlock()
	return nil
}

// Stats says how the Store is. A closed one is down.
func (m *memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isClosed() {
		return Stats{Down: ErrClosed}
	}
	t := m.table
	return Stats{Bytes: t.used, MaxBytes: t.maxBytes, Keys: t.keys, Streams: len(t.streams)}
}

// Close forgets everything.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isClosed() {
		close(m.closed)
		m.table = nil
	}
	return nil
}
