package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A drawer is a Memory with the Store's rules for revisions, and room for faults.
type drawer struct {
	mu     sync.Mutex
	values map[string][]byte
	revs   map[string]uint64
	swaps  int
	lose   int   // so many swaps lose their race
	fault  error // what every Get answers
	full   error // what every Swap answers
}

func newDrawer() *drawer { return &drawer{values: map[string][]byte{}, revs: map[string]uint64{}} }

func (d *drawer) Get(_ context.Context, key string) ([]byte, uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return nil, 0, d.fault
	}
	return slices.Clone(d.values[key]), d.revs[key], nil
}

func (d *drawer) GetAll(_ context.Context, keys ...string) (values [][]byte, revs []uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil {
		return nil, nil, d.fault
	}
	for _, key := range keys {
		values, revs = append(values, slices.Clone(d.values[key])), append(revs, d.revs[key])
	}
	return values, revs, nil
}

func (d *drawer) Swap(_ context.Context, key string, value []byte, rev uint64) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swaps++
	if d.full != nil {
		return false, d.full
	}
	if d.lose > 0 || d.revs[key] != rev {
		d.lose--
		return false, nil
	}
	d.values[key] = slices.Clone(value)
	d.revs[key]++
	return true, nil
}

func add(n int) func(int) (int, error) {
	return func(old int) (int, error) { return old + n, nil }
}

func TestCellKeepsItsValue(t *testing.T) {
	d := newDrawer()
	c := NewCell[map[string]Cursor](d, "cursors")
	if got, err := c.Load(t.Context()); got != nil || err != nil {
		t.Fatalf("Load of an empty cell: got %v, %v, want the zero value", got, err)
	}
	set := func(m map[string]Cursor) (map[string]Cursor, error) {
		if m == nil {
			m = map[string]Cursor{}
		}
		m["job_a"] = Cursor{At: 12, Announced: true}
		return m, nil
	}
	if _, err := c.Change(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	again := NewCell[map[string]Cursor](d, "cursors")
	got, err := again.Load(t.Context())
	if err != nil || got["job_a"] != (Cursor{At: 12, Announced: true}) {
		t.Fatalf("Load by another replica: got %v, %v", got, err)
	}
	if other, _ := NewCell[Plan](d, "plan").Load(t.Context()); other != (Plan{}) {
		t.Fatalf("another key holds %v, want nothing", other)
	}
}

func TestCellWritesNothingNew(t *testing.T) {
	d := newDrawer()
	c := NewCell[int](d, "n")
	for range 3 {
		if got, err := c.Change(t.Context(), func(int) (int, error) { return 7, nil }); got != 7 || err != nil {
			t.Fatalf("Change: got %d, %v", got, err)
		}
	}
	if d.swaps != 1 {
		t.Errorf("%d swaps, want 1: an unchanged value need not be written", d.swaps)
	}
}

func TestCellRaces(t *testing.T) {
	for _, c := range []struct {
		name  string
		lose  int
		swaps int
		fails bool
	}{
		{"no race", 0, 1, false},
		{"the fifth try wins", 4, 5, false},
		{"five lost races are an error", 5, 5, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDrawer()
			d.lose = c.lose
			edits := 0
			got, err := NewCell[int](d, "n").Change(t.Context(), func(n int) (int, error) { edits++; return n + 1, nil })
			if (err != nil) != c.fails || d.swaps != c.swaps || edits != c.swaps {
				t.Fatalf("got %d, %v after %d swaps and %d edits", got, err, d.swaps, edits)
			}
			if c.fails && !strings.Contains(err.Error(), "5 times in a row") {
				t.Errorf("error %q does not say why", err)
			}
		})
	}
}

// Calls of one session that changed a cell at the same time lost races against each other, and the fifth was an error.
func TestCellLosesNoChange(t *testing.T) {
	d := newDrawer()
	c := NewCell[int](d, "n")
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := c.Change(t.Context(), add(1)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got, _ := c.Load(t.Context()); got != 16 || d.swaps != 16 {
		t.Errorf("got %d after 16 increments and %d swaps", got, d.swaps)
	}
}

func TestCellWaitsNoLongerThanItsCaller(t *testing.T) {
	c := NewCell[int](newDrawer(), "n")
	inside, leave := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, _ = c.Change(t.Context(), func(n int) (int, error) { close(inside); <-leave; return n + 1, nil })
	})
	<-inside
	gone := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := c.Change(ctx, add(1)); !errors.Is(err, gone) {
		t.Errorf("Change behind another: got %v", err)
	}
	close(leave)
	first.Wait()
	if got, err := c.Change(t.Context(), add(1)); got != 2 || err != nil {
		t.Errorf("Change after it: got %d, %v", got, err)
	}
}

func TestCellFaults(t *testing.T) {
	broken := errors.New("no route to the store")
	wrong := errors.New("there is no such plan")
	t.Run("the store does not answer", func(t *testing.T) {
		d := newDrawer()
		d.fault = broken
		c := NewCell[int](d, "n")
		if _, err := c.Load(t.Context()); !errors.Is(err, broken) {
			t.Errorf("Load: got %v", err)
		}
		if _, err := c.Change(t.Context(), add(1)); !errors.Is(err, broken) {
			t.Errorf("Change: got %v", err)
		}
	})
	t.Run("the store is full", func(t *testing.T) {
		d := newDrawer()
		d.full = broken
		if _, err := NewCell[int](d, "n").Change(t.Context(), add(1)); !errors.Is(err, broken) || d.swaps != 1 {
			t.Errorf("got %v after %d swaps, want the store's error after one", err, d.swaps)
		}
	})
	t.Run("edit refuses", func(t *testing.T) {
		d := newDrawer()
		_, err := NewCell[int](d, "n").Change(t.Context(), func(int) (int, error) { return 3, wrong })
		if !errors.Is(err, wrong) || d.swaps != 0 {
			t.Errorf("got %v after %d swaps, want edit's error and no write", err, d.swaps)
		}
	})
	t.Run("the store holds something else", func(t *testing.T) {
		d := newDrawer()
		d.values["n"], d.revs["n"] = []byte(`{"a":`), 4
		c := NewCell[int](d, "n")
		if got, err := c.Load(t.Context()); got != 0 || err == nil {
			t.Errorf("Load: got %d, %v, want an error", got, err)
		}
		if _, err := c.Change(t.Context(), add(1)); err == nil || d.swaps != 0 {
			t.Errorf("Change: got %v after %d swaps, want an error and no write", err, d.swaps)
		}
	})
	t.Run("a value that is no JSON", func(t *testing.T) {
		d := newDrawer()
		_, err := NewCell[any](d, "n").Change(t.Context(), func(any) (any, error) { return make(chan int), nil })
		if err == nil || d.swaps != 0 {
			t.Errorf("got %v after %d swaps, want an error and no write", err, d.swaps)
		}
	})
}

func TestZeroCell(t *testing.T) {
	var c Cell[Plan]
	if got, err := c.Load(t.Context()); got != (Plan{}) || err != nil {
		t.Errorf("Load: got %v, %v, want the zero value", got, err)
	}
	ran := false
	_, err := c.Change(t.Context(), func(p Plan) (Plan, error) { ran = true; return p, nil })
	if err == nil || ran {
		t.Errorf("Change: got %v (edit ran: %v), want an error", err, ran)
	}
}

func TestCellAsksTheStoreEachTime(t *testing.T) {
	d := newDrawer()
	c := NewCell[map[string]Cursor](d, "cursors")
	put := func(c Cell[map[string]Cursor], at int64) {
		t.Helper()
		if _, err := c.Change(t.Context(), func(map[string]Cursor) (map[string]Cursor, error) {
			return map[string]Cursor{"job_a": {At: at}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(at int64) {
		t.Helper()
		for range 2 { // the second time it is not decoded
			if got, err := c.Load(t.Context()); err != nil || got["job_a"].At != at {
				t.Fatalf("Load: got %v, %v, want the position %d", got, err, at)
			}
		}
	}
	put(c, 1)
	want(1)
	put(NewCell[map[string]Cursor](d, "cursors"), 2) // another replica
	want(2)
	held, _ := c.Load(t.Context())
	if _, err := c.Change(t.Context(), func(m map[string]Cursor) (map[string]Cursor, error) {
		m["job_b"] = Cursor{At: 3}
		return m, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, changed := held["job_b"]; changed {
		t.Fatal("an edit changed the value that an earlier Load returned; it must get a copy of its own")
	}
	d.fault = errors.New("down")
	if got, err := c.Load(t.Context()); got != nil || err == nil {
		t.Fatalf("Load without the Store: got %v, %v, want an error", got, err)
	}
}
