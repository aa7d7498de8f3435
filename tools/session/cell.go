package session

import "context"

// Memory is the part of the Store that a Cell needs; server hands in a Store narrowed to this session.
type Memory interface {
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error)
}

// A Cell is one small JSON value in the Store. It caches nothing, so every replica sees the same.
// The zero Cell has no memory: it loads the zero value and refuses changes.
type Cell[T any] struct {
	memory Memory
	key    string
}

// NewCell returns the cell that keeps its value under key.
func NewCell[T any](m Memory, key string) Cell[T] { return Cell[T]{memory: m, key: key} }

// Load returns the value, or the zero T if there is none.
func (c Cell[T]) Load(ctx context.Context) (T, error) { panic("skeleton") }

// Change replaces the value by compare-and-swap and returns the new one. edit may run up to 5 times and must be pure.
func (c Cell[T]) Change(ctx context.Context, edit func(T) (T, error)) (T, error) { panic("skeleton") }
