package state

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// MemoryOptions of a memory Store.
type MemoryOptions struct {
	SessionLife time.Duration    // of family sess; 0: DefaultSessionLife
	Now         func() time.Time // nil: time.Now
}

// NewMemory returns a Store that lives in this process and dies with it.
func NewMemory(o MemoryOptions) Store {
	if o.SessionLife <= 0 {
		o.SessionLife = DefaultSessionLife
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &memory{
		now:   o.Now,
		lives: lives(o.SessionLife),
		// Revisions and positions of an earlier process are never used again.
		last:    uint64(o.Now().UnixNano()),
		values:  map[string]entry{},
		streams: map[string]*stream{},
		due:     map[string]bool{},
		closed:  make(chan struct{}),
	}
}

// memory is a Store in a map. mu covers everything but closed, which is only waited for.
type memory struct {
	now    func() time.Time
	lives  map[string]time.Duration
	closed chan struct{}

	mu       sync.Mutex
	last     uint64 // revision or position
	values   map[string]entry
	streams  map[string]*stream
	ends     deadlines
	due      map[string]bool // keys that have a deadline in ends: one each, however often they are written
	watchers []*watcher
}

// An entry is one value. It is replaced, never changed.
type entry struct {
	value []byte
	rev   uint64
	end   time.Time // zero: never
}

// A stream is the last values that were appended.
type stream struct {
	values [][]byte
	at     []uint64 // position of each
	end    time.Time
}

// A deadline says that a key or stream may be over; what it holds decides.
type deadline struct {
	at     time.Time
	name   string
	stream bool
}

type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// enter takes the lock for one operation and removes what is over. The caller unlocks if err is nil.
func (m *memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.isClosed() {
		m.mu.Unlock()
		return ErrClosed
	}
	m.expire()
	return nil
}

func (m *memory) isClosed() bool {
	select {
	case <-m.closed:
		return true
	default:
		return false
	}
}

// expire removes what has reached its end. What was written again since gets a new deadline.
func (m *memory) expire() {
	now := m.now()
	for len(m.ends) > 0 && !m.ends[0].at.After(now) {
		d := heap.Pop(&m.ends).(deadline)
		if d.stream {
			if end := m.streams[d.name].end; end.After(now) {
				heap.Push(&m.ends, deadline{end, d.name, true})
			} else {
				delete(m.streams, d.name)
			}
			continue
		}
		if e := m.values[d.name]; e.end.After(now) {
			heap.Push(&m.ends, deadline{e.end, d.name, false})
			continue
		}
		delete(m.due, d.name)
		delete(m.values, d.name)
	}
}

func (m *memory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := checkKey(key); err != nil {
		return nil, 0, err
	}
	if err := m.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	e := m.values[key]
	return bytes.Clone(e.value), e.rev, nil
}

func (m *memory) Set(ctx context.Context, key string, value []byte) error {
	_, err := m.write(ctx, key, value, nil)
	return err
}

func (m *memory) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	return m.write(ctx, key, value, &rev)
}

// write writes if the revision is still rev; nil: whatever it is.
func (m *memory) write(ctx context.Context, key string, value []byte, rev *uint64) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	if err := checkValue(value, maxValue); err != nil {
		return false, err
	}
	life, ok := m.lives[family(key)]
	if !ok {
		return false, fmt.Errorf("%w: %q is of no family", ErrKey, key)
	}
	if err := m.enter(ctx); err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	if rev != nil && m.values[key].rev != *rev {
		return false, nil
	}
	m.last++
	e := entry{value: bytes.Clone(value), rev: m.last}
	if life > 0 {
		e.end = m.now().Add(life)
		if !m.due[key] {
			m.due[key] = true
			heap.Push(&m.ends, deadline{e.end, key, false})
		}
	}
	m.values[key] = e
	m.tell(key)
	return true, nil
}

func (m *memory) Delete(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if _, ok := m.values[key]; ok {
		delete(m.values, key)
		m.tell(key)
	}
	return nil
}

func (m *memory) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	keys := m.below(prefix)
	return keys[:min(len(keys), maxKeys)], nil
}

// below returns the keys that begin with prefix and a dot, sorted. The caller holds mu.
func (m *memory) below(prefix string) []string {
	var keys []string
	for k := range m.values {
		if strings.HasPrefix(k, prefix+".") {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (m *memory) Append(ctx context.Context, name string, value []byte) error {
	if err := checkKey(name); err != nil {
		return err
	}
	if err := checkValue(value, maxStreamValue); err != nil {
		return err
	}
	if _, ok := m.lives[family(name)]; !ok {
		return fmt.Errorf("%w: %q is of no family", ErrKey, name)
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	s := m.streams[name]
	end := m.now().Add(streamLife)
	if s == nil {
		s = &stream{}
		m.streams[name] = s
		heap.Push(&m.ends, deadline{end, name, true})
	}
	if drop := len(s.values) + 1 - maxStream; drop > 0 {
		s.values, s.at = slices.Delete(s.values, 0, drop), slices.Delete(s.at, 0, drop)
	}
	m.last++
	s.values, s.at, s.end = append(s.values, bytes.Clone(value)), append(s.at, m.last), end
	return nil
}

func (m *memory) Tail(ctx context.Context, name string, after uint64, max int) ([][]byte, uint64, error) {
	if err := checkKey(name); err != nil {
		return nil, after, err
	}
	if err := m.enter(ctx); err != nil {
		return nil, after, err
	}
	defer m.mu.Unlock()
	s := m.streams[name]
	if s == nil || max <= 0 {
		return nil, after, nil
	}
	from, found := slices.BinarySearch(s.at, after)
	if found {
		from++
	}
	to := min(len(s.at), from+max)
	if from == to {
		return nil, after, nil
	}
	var values [][]byte
	for _, v := range s.values[from:to] {
		values = append(values, bytes.Clone(v))
	}
	return values, s.at[to-1], nil
}

func (m *memory) Ping(ctx context.Context) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	m.mu.Unlock()
	return nil
}

// Close forgets everything.
func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isClosed() {
		close(m.closed)
		m.values, m.streams, m.ends, m.due = nil, nil, nil, nil
	}
	return nil
}
