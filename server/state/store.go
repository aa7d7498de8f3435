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
//
// Revisions of a key grow, and none is used again, also after a delete, an expiry or a restart. A Get or GetAll that
// starts after a write was acknowledged sees it or something newer. Every error wraps one of those below, or is that of
// ctx, which then ended before the operation had begun.
type Store interface {
	// Get returns the value and its revision. Absent or expired: nil, 0, nil.
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	// GetAll returns what Get returns for each of a few keys, in their order, as all of it was at one moment.
	GetAll(ctx context.Context, keys ...string) (values [][]byte, revs []uint64, err error)
	// Set writes whatever is there. The key's life starts anew.
	Set(ctx context.Context, key string, value []byte) error
	// Swap writes if the revision is still rev (0: the key must be absent). ok is false if it is not.
	Swap(ctx context.Context, key string, value []byte, rev uint64) (ok bool, err error)
	// Delete removes the key, whether or not it is there.
	Delete(ctx context.Context, key string) error
	// Keys returns the keys that begin with prefix and a dot, sorted, at most 10,000.
	Keys(ctx context.Context, prefix string) ([]string, error)
	// Append adds a value of at most 64 KiB to a stream. A stream of a job holds the last 256 values, the others
	// 10,000.
	Append(ctx context.Context, stream string, value []byte) error
	// Tail returns up to max values that follow position after (0: from the oldest), and the position
	// of the last one: after itself if there are none. Positions grow and mean nothing else.
	Tail(ctx context.Context, stream string, after uint64, max int) (values [][]byte, last uint64, err error)
	// Watch calls changed for every key below prefix that exists, and then for every one that is written or deleted,
	// until ctx ends: nil, or the Store is closed: ErrClosed. A key that changes twice quickly may be called once.
	// After a reconnect it calls changed for every key that exists. changed runs on the goroutine of Watch, one call
	// at a time; a slow one delays no writer.
	Watch(ctx context.Context, prefix string, changed func(key string)) error
	// Ping returns nil if reads and writes would be carried out now.
	Ping(ctx context.Context) error
	// Close ends all Watches. Every later call gets ErrClosed.
	Close() error
}

// The errors of a Store. The first three are those of the moment; ErrKey, ErrSize and ErrClosed say that the operation
// can never succeed.
var (
	ErrDown   = errors.New("state store not reachable")    // nothing was carried out
	ErrUnsure = errors.New("state store: outcome unknown") // a write may have been carried out
	ErrFull   = errors.New("state store full")             // nothing was carried out; reads and deletes go on
	ErrKey    = errors.New("state: bad key")
	ErrSize   = errors.New("state: value empty or too large")
	ErrClosed = errors.New("state: store is closed")
)

// ErrNewer is for those who read values: the format of the value is newer than this program. Open returns it for files
// of a newer format.
var ErrNewer = errors.New("state: written by a newer version")

// A Stater tells how it is. Both back-ends of this package are one; what Scoped returns is none. It asks neither the
// disk nor a network, so it may be called for each scrape.
type Stater interface {
	Stats() Stats
}

// Stats are for health and metrics.
type Stats struct {
	Bytes    int64 // of all keys and values that are alive, with 42 bytes for each value; at most MaxBytes
	MaxBytes int64
	Keys     int
	Streams  int
	Disk     int64  // bytes of the files; 0: there are none
	Cut      int64  // bytes of half-written records that the start cut off; none of them was acknowledged and synced
	Server   string // version of the nats-server that it is connected to; "": it is not in NATS
	Copies   int    // of what is stored, each on another server; 0: it is not in NATS
	Down     error  // why writes and Ping get ErrDown; nil: the Store is up
	Lag      error  // why the log could not be compacted last time; it grows until that succeeds
}

// Scoped returns a Store that sees only the keys and streams below prefix. Its keys are relative to prefix, in
// arguments and in what Keys and Watch report; the empty prefix of Keys and Watch means all of them. Closing it does
// nothing: the Store belongs to the caller that opened it.
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

func (s scoped) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	full := make([]string, len(keys))
	for i, key := range keys {
		full[i] = s.full(key)
	}
	return s.store.GetAll(ctx, full...)
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
