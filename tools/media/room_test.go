package media

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// Ten calls held a notebook of 100 MiB each. Now all held files have at most 100 MiB together, whatever their sizes,
// and every waiting call gets its turn.
func TestHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		var held, most, done atomic.Int64
		var group sync.WaitGroup
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 200 {
			size := random.Int64N(30 * mib)
			if i%20 == 0 {
				size = 100*mib + random.Int64N(2)*mib // and one that is too large by far waits as one of 100 MiB
			}
			group.Go(func() {
				leave, err := r.Hold(t.Context(), size)
				if err != nil {
					t.Error(err)
					return
				}
				if size >= mib {
					now := held.Add(min(size, 100*mib))
					for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
					}
					time.Sleep(time.Duration(size)) // in the bubble
					held.Add(-min(size, 100*mib))
				}
				leave()
				done.Add(1)
			})
		}
		group.Wait()
		t.Logf("%d files, at most %d MiB at a time", done.Load(), most.Load()/mib)
		if most.Load() > 100*mib || most.Load() < 90*mib || done.Load() != 200 {
			t.Errorf("%d bytes at a time, %d files; want at most 100 MiB and all", most.Load(), done.Load())
		}
	})
}

// A large file is not passed by small ones for ever, and the end of a waiting call's ctx gives its room back.
func TestHoldOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		enter := func(ctx context.Context, size int64) func() {
			leave, err := r.Hold(ctx, size)
			if err != nil {
				return nil
			}
			return leave
		}
		first := enter(t.Context(), 60*mib)
		var order []int64
		var mu sync.Mutex
		wait := func(size int64) {
			go func() {
				leave := enter(t.Context(), size)
				mu.Lock()
				order = append(order, size/mib)
				mu.Unlock()
				leave()
			}()
			synctest.Wait()
		}
		wait(100 * mib)
		wait(10 * mib)
		if enter(t.Context(), mib-1) == nil { // no small one may wait
			t.Error("a small file had to wait")
		}
		if len(order) > 0 {
			t.Errorf("%v came in while 60 MiB were held and 100 waited", order)
		}
		first()
		synctest.Wait()
		if len(order) != 2 || order[0] != 100 {
			t.Errorf("%v, want 100 before 10", order)
		}

		first = enter(t.Context(), 60*mib)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("the user left")
		var ended error
		go func() { _, ended = r.Hold(ctx, 50*mib) }()
		synctest.Wait()
		cancel(reason)
		synctest.Wait()
		if !errors.Is(ended, reason) {
			t.Errorf("%v, want %v", ended, reason)
		}
		if second := enter(t.Context(), 40*mib); second == nil {
			t.Error("what the one who left had waited for is lost")
		} else {
			second()
		}
		first()
	})
}
