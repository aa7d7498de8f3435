package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
)

// changeTries is how often Change tries. A session's own calls take turns, so five lost races against other processes
// in a row mean a fault and not a busy Store.
const changeTries = 5

// errNoMemory is what Change of a zero Cell says: a change that is kept nowhere would be a lie.
var errNoMemory = errors.New("there is no memory behind it")

// Memory is the part of the Store that a Cell needs; server hands in a Store narrowed to this session. Memories can be
// compared with ==.
// Get answers nil, 0, nil for a key that is absent. GetAll answers for each of several keys what Get does, all as of
// one moment. Swap writes if the revision is still rev (0: the key must be absent), and says with ok whether it did.
// An error means that the Store could not be reached or is full.
type Memory interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	GetAll(ctx context.Context, keys ...string) (values [][]byte, revs []uint64, err error)
	Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error)
}

// A Cell is one small JSON value in the Store. Load asks the Store each time, so every replica sees the same; In shows
// the value of a Snapshot. Only what a revision decodes to is remembered, because most calls find the one of the call
// before (BenchmarkServe).
// The zero Cell has no memory: it loads the zero value and refuses changes. Safe for concurrent use, and so are copies.
type Cell[T any] struct {
	memory Memory
	key    string
	last   *atomic.Pointer[decoded[T]] // nil in the zero Cell
	// holds one value while a change is made: those of one Cell and its copies take turns
	turn chan struct{}
}

// decoded is what the Store held at a revision. Revisions are never used again.
type decoded[T any] struct {
	rev   uint64
	value T
}

// NewCell returns the cell that keeps its value under key.
func NewCell[T any](m Memory, key string) Cell[T] {
	return Cell[T]{memory: m, key: key, last: &atomic.Pointer[decoded[T]]{}, turn: make(chan struct{}, 1)}
}

// Load returns the value, or the zero T if there is none. It is shared: callers must not change what it points to. An
// error means that the Store did not answer or holds something else under this key; the value is then the zero T and
// must not be taken for the truth.
func (c Cell[T]) Load(ctx context.Context) (T, error) {
	var zero T
	if c.memory == nil {
		return zero, nil
	}
	stored, rev, err := c.memory.Get(ctx, c.key)
	if err != nil {
		return zero, fmt.Errorf("load cell %s: %w", c.key, err)
	}
	return c.decode(stored, rev)
}

// In is Load as of the moment of a Snapshot. A value that the Snapshot does not show is read from the Store.
func (c Cell[T]) In(ctx context.Context, shown Snapshot) (T, error) {
	if stored, rev, ok := shown.of(c.memory, c.key); ok {
		return c.decode(stored, rev)
	}
	return c.Load(ctx)
}

// decode returns the value that the Store held at a revision; 0: there was none.
func (c Cell[T]) decode(stored []byte, rev uint64) (T, error) {
	var zero T
	if rev == 0 {
		return zero, nil
	}
	if last := c.last.Load(); last != nil && last.rev == rev {
		return last.value, nil
	}
	d := &decoded[T]{rev: rev}
	if err := json.Unmarshal(stored, &d.value); err != nil {
		return zero, fmt.Errorf("load cell %s: %w", c.key, err)
	}
	c.last.Store(d)
	return d.value, nil
}

// Change replaces the value by compare-and-swap and returns the new one. edit gets the value as it is, or the zero
// T; it may run up to 5 times, each time on a copy of its own, and must be pure. An error of edit comes back wrapped,
// and nothing is written; so does an error of the Store, or why ctx ended before it was this change's turn. A value
// that edit leaves as it was is not written again.
func (c Cell[T]) Change(ctx context.Context, edit func(T) (T, error)) (T, error) {
	var zero T
	value, err := c.change(ctx, edit)
	if err != nil {
		return zero, fmt.Errorf("change cell %s: %w", c.key, err)
	}
	return value, nil
}

func (c Cell[T]) change(ctx context.Context, edit func(T) (T, error)) (T, error) {
	var zero T
	if c.memory == nil {
		return zero, errNoMemory
	}
	if err := c.enter(ctx); err != nil {
		return zero, err
	}
	defer func() { <-c.turn }()
	for range changeTries {
		old, stored, rev, err := c.load(ctx)
		if err != nil {
			return zero, err
		}
		value, err := edit(old)
		if err != nil {
			return zero, err
		}
		next, err := json.Marshal(value)
		if err != nil {
			return zero, err
		}
		if rev != 0 && bytes.Equal(next, stored) {
			return value, nil
		}
		ok, err := c.memory.Swap(ctx, c.key, next, rev)
		if err != nil {
			return zero, err
		}
		if ok {
			return value, nil
		}
	}
	return zero, fmt.Errorf("others changed it %d times in a row", changeTries)
}

// enter waits for this change's turn. A turn that is free is taken whatever ctx says: the Store decides about that.
func (c Cell[T]) enter(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// load returns a value that is the caller's, with its bytes in the Store and their revision, 0 if there are none.
func (c Cell[T]) load(ctx context.Context) (value T, stored []byte, rev uint64, err error) {
	stored, rev, err = c.memory.Get(ctx, c.key)
	if err != nil || rev == 0 {
		return value, nil, 0, err
	}
	if err := json.Unmarshal(stored, &value); err != nil {
		return value, nil, 0, err
	}
	return value, stored, rev, nil
}
