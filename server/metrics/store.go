package metrics

import (
	"context"
	"time"

	"codehand/server/state"
)

// Measure returns a Store that counts what s does, by operation and outcome: ok, lost (a Swap that came too late) or
// error. A Watch is not measured, since it lasts as long as its caller wants. backend is a Kind.
func (m *Counts) Measure(s state.Store, backend string) state.Store {
	if m == nil {
		return s
	}
	in := func(op string) timer {
		return timer{m.stores.with(op, backend, "ok"), m.stores.with(op, backend, "error")}
	}
	return &measuredStore{
		Store: s, get: in("get"), all: in("getall"),
		set: in("set"), swap: in("swap"), remove: in("delete"), keys: in("keys"),
		push: in("append"),
		tail: in("tail"), ping: in("ping"),
		lost: m.stores.with("swap", backend, "lost"),
	}
}

// A timer is the children of one operation.
type timer struct{ ok, failed *histogram }

func (t timer) stop(start time.Time, err error) {
	o := t.ok
	if err != nil {
		o = t.failed
	}
	o.observe(time.Since(start).Seconds())
}

type measuredStore struct {
	state.Store
	get, all, set, swap, remove, keys, push, tail, ping timer
	lost                                                *histogram
}

func (s *measuredStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	start := time.Now()
	value, rev, err := s.Store.Get(ctx, key)
	s.get.stop(start, err)
	return value, rev, err
}

func (s *measuredStore) GetAll(ctx context.Context, keys ...string) ([][]byte, []uint64, error) {
	start := time.Now()
	values, revs, err := s.Store.GetAll(ctx, keys...)
	s.all.stop(start, err)
	return values, revs, err
}

func (s *measuredStore) Set(ctx context.Context, key string, value []byte) error {
	start := time.Now()
	err := s.Store.Set(ctx, key, value)
	s.set.stop(start, err)
	return err
}

func (s *measuredStore) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	start := time.Now()
	ok, err := s.Store.Swap(ctx, key, value, rev)
	if err == nil && !ok {
		s.lost.observe(time.Since(start).Seconds())
		return ok, err
	}
	s.swap.stop(start, err)
	return ok, err
}

func (s *measuredStore) Delete(ctx context.Context, key string) error {
	start := time.Now()
	err := s.Store.Delete(ctx, key)
	s.remove.stop(start, err)
	return err
}

func (s *measuredStore) Keys(ctx context.Context, prefix string) ([]string, error) {
	start := time.Now()
	keys, err := s.Store.Keys(ctx, prefix)
	s.keys.stop(start, err)
	return keys, err
}

func (s *measuredStore) Append(ctx context.Context, stream string, value []byte) error {
	start := time.Now()
	err := s.Store.Append(ctx, stream, value)
	s.push.stop(start, err)
	return err
}

func (s *measuredStore) Tail(ctx context.Context, stream string, after uint64, most int) ([][]byte, uint64, error) {
	start := time.Now()
	values, last, err := s.Store.Tail(ctx, stream, after, most)
	s.tail.stop(start, err)
	return values, last, err
}

func (s *measuredStore) Ping(ctx context.Context) error {
	start := time.Now()
	err := s.Store.Ping(ctx)
	s.ping.stop(start, err)
	return err
}
