package limits

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurnsComeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := limited(Quota{ConcurrentCalls: 2})
		var mu sync.Mutex
		var order []int
		in, most := 0, 0
		turns := make([]*Turn, 12)
		for i := range turns {
			turns[i] = l.Arrive()
		}
		var calls sync.WaitGroup
		for i, turn := range slices.Backward(turns) { // Wait in another order than Arrive
			calls.Go(func() {
				defer turn.Leave()
				if ok, err := turn.Wait(t.Context()); !ok || err != nil {
					t.Errorf("turn %d: %v, %v", i, ok, err)
					return
				}
				mu.Lock()
				order = append(order, i/2) // the two that are in together may come either way
				in++
				most = max(most, in)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				in--
				mu.Unlock()
			})
		}
		start := time.Now()
		calls.Wait()
		if want := []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}; !slices.Equal(order, want) || most != 2 || time.Since(start) != 6*time.Second {
			t.Errorf("they came in pairs %v, %d at once, in %s", order, most, time.Since(start))
		}
	})
}

func TestTurnThatDoesNotCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, _ := limited(Quota{ConcurrentShells: 1, ConcurrentCalls: 1})
		held := l.Shell()
		if ok, err := held.Wait(t.Context()); !ok || err != nil {
			t.Fatalf("the first one waits: %v, %v", ok, err)
		}
		if ok, err := l.Arrive().Wait(t.Context()); !ok || err != nil {
			t.Errorf("calls wait for shells: %v, %v", ok, err)
		}
		late, start := l.Shell(), time.Now()
		if ok, err := late.Wait(t.Context()); ok || err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("after %s: %v, %v; want 10s", time.Since(start), ok, err)
		}
		// It gave its place up, also without Leave: who comes later is next.
		next := l.Shell()
		if ok, err := late.Wait(t.Context()); ok || err != nil {
			t.Errorf("a turn that was given up comes: %v, %v", ok, err)
		}
		held.Leave()
		held.Leave()
		if ok, err := next.Wait(t.Context()); !ok || err != nil {
			t.Errorf("the next one: %v, %v", ok, err)
		}
		late.Leave()
		late.Leave() // takes no place from the others
		if third := l.Shell(); third.in {
			t.Error("leaving twice gives two places")
		}

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start = time.Now()
		if ok, err := l.Shell().Wait(ctx); ok || !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("cancelled after %s: %v, %v", time.Since(start), ok, err)
		}
		// Leave while a turn waits, as when a connection ends.
		waiting := l.Shell()
		time.AfterFunc(time.Second, waiting.Leave)
		if ok, err := waiting.Wait(t.Context()); ok || err != nil {
			t.Errorf("left while it waited: %v, %v", ok, err)
		}
	})
}

// New limits hold at once: a higher one admits waiting turns, a lower one admits none until enough have left.
func TestTurnsWithNewNumbers(t *testing.T) {
	t.Parallel()
	at := newClock()
	var m Limiters
	limits := func(n int) *Limiter { return m.Of("ann", Quota{ConcurrentCalls: n}, at.now) }
	l := limits(1)
	var turns []*Turn
	for range 6 {
		turns = append(turns, l.Arrive())
	}
	in := func() (n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i, turn := range turns {
			if turn.in && !turn.left {
				n++
			} else if !turn.in && slices.ContainsFunc(turns[i:], func(o *Turn) bool { return o.in }) {
				t.Fatalf("turn %d is overtaken", i)
			}
		}
		return n
	}
	for _, c := range []struct{ most, leave, want int }{{1, -1, 1}, {3, -1, 3}, {1, -1, 3}, {1, 0, 2}, {1, 1, 1}, {1, 2, 1}, {0, -1, 3}} {
		limits(c.most)
		if c.leave >= 0 {
			turns[c.leave].Leave()
		}
		if got := in(); got != c.want {
			t.Errorf("%+v: %d are in", c, got)
		}
	}
}

// Whatever happens, the queue does what a list that is looked through from its beginning does.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	const most = 3
	l, _ := limited(Quota{ConcurrentCalls: most})
	var turns []*Turn // that did not leave, in order
	for step := range 5000 {
		if random.IntN(2) == 0 && len(turns) < 20 {
			turns = append(turns, l.Arrive())
		} else if len(turns) > 0 {
			i := random.IntN(len(turns))
			turns[i].Leave()
			turns = slices.Delete(turns, i, i+1)
		}
		for i, turn := range turns {
			if got, want := turn.in, i < most; got != want {
				t.Fatalf("seed %d, step %d: the turn at %d of %d is in: %v", seed, step, i, len(turns), got)
			}
		}
	}
	for _, turn := range turns {
		turn.Leave()
	}
	if l.running.in != 0 || len(l.running.waiting) != 0 {
		t.Errorf("seed %d: %d are in, %d wait", seed, l.running.in, len(l.running.waiting))
	}
}

// Many at once, for the race detector: never more than the number, and everybody gets in.
func TestTurnsAtTheSameTime(t *testing.T) {
	t.Parallel()
	const most = 4
	l, _ := limited(Quota{ConcurrentCalls: most})
	var mu sync.Mutex
	in := 0
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			for range 20 {
				turn := l.Arrive()
				ok, err := turn.Wait(t.Context())
				mu.Lock()
				in++
				if !ok || err != nil || in > most {
					t.Errorf("%v, %v, %d in", ok, err, in)
				}
				in--
				mu.Unlock()
				turn.Leave()
			}
		})
	}
	calls.Wait()
}
