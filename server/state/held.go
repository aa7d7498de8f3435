package state

import (
	"context"
	"sync"
	"sync/atomic"
)

// heldStore is a Store that works only while this process may use it. Reads are refused, too: a process that was
// stopped and goes on must not change files for people whom another one serves now, and each call begins with a read.
type heldStore struct {
	Store
	hold   *Hold
	close  func()
	closed atomic.Bool
}

// Held is s for a process that keeps hold: it fails with ErrDown while others may take the process for dead, and gives
// the record back when it is closed.
func Held(s Store, hold *Hold) Store {
	h := &heldStore{Store: s, hold: hold}
	h.close = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
		defer cancel()
		hold.GiveBack(ctx)
		h.closed.Store(true)
	})
	return h
}

func (s *heldStore) mine(ctx context.Context) error {
	if ctx.Err() != nil || s.closed.Load() {
		return nil //nolint:nilerr // the operation says so
	}
	return s.hold.Check()
}

func (s *heldStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := s.mine(ctx); err != nil {
		return nil, 0, err
	}
	return s.Store.Get(ctx, key)
}

func (s *heldStore) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	if err := s.mine(ctx); err != nil {
		return nil, nil, err
	}
	return s.Store.GetAll(ctx, keys...)
}

func (s *heldStore) Set(ctx context.Context, key string, value []byte) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.Store.Set(ctx, key, value)
}

func (s *heldStore) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	if err := s.mine(ctx); err != nil {
		return false, err
	}
	return s.Store.Swap(ctx, key, value, rev)
}

func (s *heldStore) Delete(ctx context.Context, key string) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

func (s *heldStore) Keys(ctx context.Context, prefix string) ([]string, error) {
	if err := s.mine(ctx); err != nil {
		return nil, err
	}
	return s.Store.Keys(ctx, prefix)
}

func (s *heldStore) Append(ctx context.Context, name string, value []byte) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.Store.Append(ctx, name, value)
}

func (s *heldStore) Tail(ctx context.Context, name string, after uint64, most int) ([][]byte, uint64, error) {
	if err := s.mine(ctx); err != nil {
		return nil, after, err
	}
	return s.Store.Tail(ctx, name, after, most)
}

func (s *heldStore) Ping(ctx context.Context) error {
	if err := s.mine(ctx); err != nil {
		return err
	}
	return s.Store.Ping(ctx)
}

// Stats also says whether this process has it.
func (s *heldStore) Stats() (stats Stats) {
	if inner, ok := s.Store.(Stater); ok {
		stats = inner.Stats()
	}
	if stats.Down == nil {
		stats.Down = s.hold.Check()
	}
	return stats
}

// Close gives the Store to the next process.
func (s *heldStore) Close() error {
	s.close()
	return s.Store.Close()
}
