package state

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// A Store keeps small values by key, with compare-and-swap, and short streams. All methods are safe
// for concurrent use. An error means that the Store could not be reached or is full, or that the caller broke a rule
// of keys and values; absence and lost races are not errors. Values are copied on the way in and out.
type Store interface {
	// Get returns the value and its revision. Absent or expired: nil, 0, nil.
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	// Set writes whatever is there. The key's life starts anew.
	Set(ctx context.Context, key string, value []byte) error
	// Swap writes if the revision is still rev (0: the key must be absent). ok is false if it is not.
	Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error)
	// Delete removes the key, whether or not it is there.
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix and a dot, sorted, at most 10,000.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Append adds a value of at most 64 KiB to a stream. A stream holds the last 256 values.
	Append(ctx context.Context, stream string, value []byte) error
	// Tail returns up to max values that follow position after (0: from the oldest), and the position
	// of the last one: after itself if there are none. Positions grow and mean nothing else.
	Tail(ctx context.Context, stream string, after uint64, max int) (values [][]byte, last uint64, err error)
	// Watch calls changed for every key below prefix that exists, and then for every one that is written or deleted,
	// until ctx ends: nil, or the Store is closed: ErrClosed. A key that changes twice quickly may be called once.
	// After a reconnect it calls changed for every key that exists. changed runs on the goroutine of Watch, one call
	// at a time; a slow one delays no writer.
	Watch(ctx context.Context, prefix string, changed func(key string)) error
	Ping(ctx context.Context) error
	// Close ends all Watches. Every later call gets ErrClosed.
	Close() error
}

// The errors of callers. They say that the call can never succeed.
var (
	ErrKey    = errors.New("not a key")
	ErrSize   = errors.New("value is empty or too large")
	ErrClosed = errors.New("store is closed")
)

// Scoped returns a Store that sees only the keys and streams below prefix. Its keys are relative to prefix, in
// arguments and in what Keys and Watch report; the empty prefix of Keys and Watch means all of them. Closing it does
// nothing: the Store belongs to whoever opened it.
func Scoped(s Store, prefix string) Store { return scoped{s, prefix} }

type scoped struct {
	store  Store
	prefix string
}

// full is the key as the Store knows it. A key that is broken stays so; that of a tree may be "".
func (s scoped) full(key string) string { return s.prefix + "." + key }

func (s scoped) tree(prefix string) string {
	if prefix == "" {
		return s.prefix
	}
	return s.full(prefix)
}

func (s scoped) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	return s.store.Get(ctx, s.full(key))
}

func (s scoped) Set(ctx context.Context, key string, value []byte) error {
	return s.store.Set(ctx, s.full(key), value)
}

func (s scoped) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	return s.store.Swap(ctx, s.full(key), value, rev)
}

func (s scoped) Delete(ctx context.Context, key string) error {
	return s.store.Delete(ctx, s.full(key))
}

func (s scoped) Keys(ctx context.Context, prefix string) ([]string, error) {
	keys, err := s.store.Keys(ctx, s.tree(prefix))
	keys = slices.Clone(keys)
	for i, k := range keys {
		keys[i] = s.inner(k)
	}
	return keys, err
}

func (s scoped) inner(key string) string { return strings.TrimPrefix(key, s.prefix+".") }

func (s scoped) Append(ctx context.Context, stream string, value []byte) error {
	return s.store.Append(ctx, s.full(stream), value)
}

func (s scoped) Tail(ctx context.Context, stream string, after uint64, max int) ([][]byte, uint64, error) {
	return s.store.Tail(ctx, s.full(stream), after, max)
}

func (s scoped) Watch(ctx context.Context, prefix string, changed func(key string)) error {
	return s.store.Watch(ctx, s.tree(prefix), func(key string) { changed(s.inner(key)) })
}

func (s scoped) Ping(ctx context.Context) error { return s.store.Ping(ctx) }

func (s scoped) Close() error { return nil }
