package filestate_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"codehand/filestate"
)

// TestPaths: what was used last comes first, and what an earlier process noted is still there.
func TestPaths(t *testing.T) {
	t.Parallel()
	memory := newMapMemory()
	keep := func(o *filestate.Options) { o.Memory = memory }
	d := newDesk(t, keep)
	paths := func(l *filestate.Ledger, limit int) []string {
		t.Helper()
		got, err := l.Paths(t.Context(), limit)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := paths(d.l, 10); got != nil {
		t.Errorf("a session that has seen nothing has %q", got)
	}
	for _, name := range []string{"a", "b", "c"} {
		d.write(name, name)
		d.see(name)
	}
	d.see("a")
	want := []string{d.path("a"), d.path("c"), d.path("b")}
	if got := paths(d.l, 10); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := paths(d.l, 2); !slices.Equal(got, want[:2]) {
		t.Errorf("got %q, want two", got)
	}
	if err := d.l.Forget(t.Context(), d.path("c")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.edit("b", "b", "d"); err != nil {
		t.Fatal(err)
	}
	if got := paths(d.l, 10); !slices.Equal(got, []string{d.path("b"), d.path("a")}) {
		t.Errorf("after a change and something forgotten: %q", got)
	}

	later := filestate.New(filestate.Options{Memory: memory, Dir: t.TempDir(), Fast: true})
	got := paths(later, 10)
	slices.Sort(got)
	if !slices.Equal(got, []string{d.path("a"), d.path("b")}) {
		t.Errorf("a later process has %q", got)
	}
	// What another process notes and forgets meanwhile counts at once.
	d.write("e", "e")
	d.see("e")
	if err := d.l.Forget(t.Context(), d.path("a")); err != nil {
		t.Fatal(err)
	}
	if got := paths(later, 10); len(got) != 2 || !slices.Contains(got, d.path("e")) || slices.Contains(got, d.path("a")) {
		t.Errorf("after changes elsewhere: %q", got)
	}

	broken := filestate.New(filestate.Options{Memory: brokenMemory{}, Dir: t.TempDir()})
	if _, err := broken.Paths(t.Context(), 1); !errors.Is(err, filestate.ErrMemory) {
		t.Errorf("without a memory: %v", err)
	}
}

// The memory, which may be on another machine, is asked once for each path, no matter which process noted it.
func TestPathsAskOnce(t *testing.T) {
	t.Parallel()
	memory := &countingMemory{mapMemory: newMapMemory()}
	d := newDesk(t, func(o *filestate.Options) { o.Memory = memory.mapMemory })
	later := filestate.New(filestate.Options{Memory: memory, Dir: t.TempDir(), Fast: true})
	asked := func(want int64) {
		t.Helper()
		before := memory.gets.Load()
		if _, err := later.Paths(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if got := memory.gets.Load() - before; got != want {
			t.Errorf("the memory was asked %d times, want %d", got, want)
		}
	}
	for i, name := range []string{"a", "b", "c"} {
		d.write(name, name)
		d.see(name)
		asked(1)
		asked(0)
		if got, err := later.Paths(t.Context(), 10); len(got) != i+1 || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// A countingMemory counts what it is asked for.
type countingMemory struct {
	*mapMemory
	gets atomic.Int64
}

func (m *countingMemory) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	m.gets.Add(1)
	return m.mapMemory.Get(ctx, key)
}
