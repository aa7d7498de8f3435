package state

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// After three failures in a row nothing is tried until a probe succeeds, and a success between them begins anew.
func TestBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		var running sync.WaitGroup
		b := newBreaker(stop, &running)
		var probes atomic.Int64
		var back atomic.Bool
		b.probe = func(context.Context) error {
			probes.Add(1)
			if !back.Load() {
				return ErrDown
			}
			return nil
		}
		bad := errors.Join(ErrDown)
		b.failed(bad)
		b.failed(bad)
		b.succeeded()
		b.failed(bad)
		b.failed(bad)
		if err := b.check(); err != nil {
			t.Errorf("open after two failures: %v", err)
		}
		b.failed(bad)
		if err := b.check(); !errors.Is(err, ErrDown) {
			t.Errorf("after three failures: %v", err)
		}
		b.failed(bad)
		time.Sleep(10*probeEvery + 1)
		synctest.Wait()
		if err := b.check(); probes.Load() != 10 || !errors.Is(err, ErrDown) {
			t.Errorf("%d probes, %v", probes.Load(), err)
		}
		back.Store(true)
		time.Sleep(probeEvery)
		synctest.Wait()
		if err := b.check(); probes.Load() != 11 || err != nil {
			t.Errorf("%d probes, %v", probes.Load(), err)
		}
		for range breakAfter {
			b.failed(bad)
		}
		close(stop)
		running.Wait()
	})
}

// A process that cannot renew its record stops writing before another can take it, and begins again when it has it back.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: NewMemory(MemoryOptions{})}
		first, second := newHold(store), newHold(store)
		must(t, first.Take(t.Context()))
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { first.Keep(stop, func() {}) })
		time.Sleep(time.Hour)
		must(t, first.Check())
		began := time.Now()
		err := second.Take(t.Context())
		if held, ok := errors.AsType[*HeldError](err); !ok || held.PID == 0 || held.Since.IsZero() || second.Check() == nil {
			t.Fatalf("a second process got %v", err)
		}
		if waited := time.Since(began); waited > holdEvery+time.Second {
			t.Errorf("it was refused after %v", waited)
		}

		store.fail(ErrDown)
		time.Sleep(holdGood + time.Millisecond)
		if err := first.Check(); !errors.Is(err, ErrDown) {
			t.Errorf("it writes for longer than %v: %v", holdGood, err)
		}
		store.fail(nil)
		time.Sleep(holdEvery)
		must(t, first.Check())

		store.fail(ErrUnsure) // carried out, but not answered
		time.Sleep(2*holdEvery + time.Millisecond)
		store.fail(nil)
		time.Sleep(holdEvery)
		must(t, first.Check())

		close(stop) // as if it were stopped
		running.Wait()
		began = time.Now()
		must(t, second.Take(t.Context()))
		if waited := time.Since(began); waited > holdLife+holdEvery || waited < holdGood-holdEvery {
			t.Errorf("a dead one was waited for %v", waited)
		}
		if err := first.Check(); !errors.Is(err, ErrDown) {
			t.Errorf("both write: %v", err)
		}
		if _, ok := errors.AsType[*HeldError](first.Renew(t.Context())); !ok {
			t.Error("the first takes it back")
		}
		second.GiveBack(t.Context())
		if err := second.Check(); !errors.Is(err, ErrDown) {
			t.Errorf("after it was given back: %v", err)
		}
		began = time.Now()
		must(t, first.Take(t.Context()))
		if waited := time.Since(began); waited > 0 {
			t.Errorf("what was given back was waited for %v", waited)
		}
	})
}

// A flaky Store fails when a test wants it: with ErrDown before, with ErrUnsure after a write was carried out.
type flaky struct {
	Store
	mu  sync.Mutex
	err error
}

func (f *flaky) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *flaky) Swap(ctx context.Context, key string, value []byte, rev uint64) (bool, error) {
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if errors.Is(err, ErrDown) {
		return false, err
	}
	ok, failed := f.Store.Swap(ctx, key, value, rev)
	if err != nil {
		return false, err
	}
	return ok, failed
}

// Only servers that are new enough are used.
func TestAtLeast(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"2.12.3": true, "v2.12.3": true, "2.12.10": true, "2.15.0-RC.1": true, "3.0.0": true,
		"2.12.2": false, "2.9.99": false, "": false, "x": false, "2": false,
	} {
		if atLeast(version, oldestServer) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}

// No secret stands in a URL, and what Open could not use is refused where it is set.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	for url, good := range map[string]bool{
		"embedded:": true, "memory:": true, "nats://h": true, "nats://h:4222,i:4223": true, "tls://[::1]:4222, tls://h": true,
		"nats://h/": true, "": false, "nats://": false, "nats://u:secret@h": false, "nats://secret@h": false,
		"nats://h,tls://i": false, "nats://h/secret": false, "nats://h?secret": false, "redis://h": false, "nats://h:secret": false,
	} {
		err := CheckURL(url)
		if (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("it is repeated: %v", err)
		}
	}
	servers, err := natsServers("nats://h,i:1")
	if err != nil || len(servers) != 2 || servers[0] != "nats://h:4222" || servers[1] != "nats://i:1" {
		t.Errorf("%q, %v", servers, err)
	}
	for url, want := range map[string]string{"embedded:": "embedded", "memory:": "memory", "tls://h": "nats"} {
		if got := Kind(url); got != want {
			t.Errorf("%s is %s", url, got)
		}
	}
}

// A Store is for one process or for nodes: whoever comes second is refused while the first lives.
func TestAloneOrNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(MemoryOptions{})
		alone := newHold(store)
		must(t, takeAlone(t.Context(), alone))
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() { alone.Keep(stop, func() {}) })
		if held, ok := errors.AsType[*HeldError](Unheld(t.Context(), store)); !ok || held.PID == 0 || held.Node != "" {
			t.Errorf("a node got %v", held)
		}
		close(stop) // as if it were killed
		running.Wait()
		must(t, Unheld(t.Context(), store))

		node := NewHold(store, NodeRecords+".a", func(h Holder) any { return h })
		must(t, node.Take(t.Context()))
		stop = make(chan struct{})
		running.Go(func() { node.Keep(stop, func() {}) })
		err := takeAlone(t.Context(), newHold(store))
		if held, ok := errors.AsType[*HeldError](err); !ok || held.PID == 0 || held.Node != "a" {
			t.Errorf("a process for itself got %v", err)
		}
		must(t, Unheld(t.Context(), store)) // it took nothing with it
		close(stop)
		running.Wait()
		node.GiveBack(t.Context())
		if node.Renew(t.Context()) == nil {
			t.Error("what was given back is renewed")
		}
		must(t, takeAlone(t.Context(), newHold(store)))
	})
}
