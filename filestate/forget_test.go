package filestate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"codehand/filestate"
)

// A session that forgets all must read again before it changes anything, in every ledger over the same memory.
func TestForgetAll(t *testing.T) {
	t.Parallel()
	memory := newMapMemory()
	d := newDesk(t, func(o *filestate.Options) { o.Memory = memory })
	other := filestate.New(filestate.Options{Memory: memory, Fast: true})
	if n, err := d.l.ForgetAll(t.Context()); n != 0 || err != nil {
		t.Errorf("of nothing: %d, %v", n, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		d.write(name, "one\ntwo\n")
		d.see(name)
	}
	d.must(d.edit("b", "one", "1"))
	if n, err := other.ForgetAll(t.Context()); n != 3 || err != nil || memory.len() != 0 {
		t.Errorf("%d, %v; %d are left", n, err, memory.len())
	}
	for _, name := range []string{"a", "b", "c"} {
		_, err := d.edit(name, "two", "2")
		wantError(t, err, filestate.ErrNotRead)
	}
	if got, err := d.l.Changed(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("changed are %v, %v", got, err)
	}
	if sight := d.see("a"); sight.Again != 0 {
		t.Errorf("a view was seen %d times before it was forgotten, and still counts", sight.Again)
	}
	d.must(d.edit("a", "two", "2"))
	d.holds("b", "1\ntwo\n")
}

// What cannot be forgotten is told, and a cancel ends it.
func TestForgetAllFails(t *testing.T) {
	t.Parallel()
	broken := filestate.New(filestate.Options{Memory: brokenMemory{}, Fast: true})
	_, err := broken.ForgetAll(t.Context())
	wantError(t, err, filestate.ErrMemory)

	memory := newMapMemory()
	d := newDesk(t, func(o *filestate.Options) { o.Memory = memory })
	d.write("a", "one\n")
	d.see("a")
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if n, err := d.l.ForgetAll(ctx); n != 0 || !errors.Is(err, reason) || memory.len() != 1 {
		t.Errorf("%d, %v; %d are left", n, err, memory.len())
	}
	failing := filestate.New(filestate.Options{Memory: undeletable{memory}, Fast: true})
	_, err = failing.ForgetAll(t.Context())
	wantError(t, err, filestate.ErrMemory)
}

// undeletable is a memory that lists and does not delete.
type undeletable struct{ *mapMemory }

func (undeletable) Delete(context.Context, string) error { return errBroken }

// Reads and changes beside it end in a state that one of them gives, and it ends however many are added.
func TestForgetAllBesideOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 8 {
		d.write(fmt.Sprint(i), "one\n")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := d.trySee(fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		if _, err := d.l.ForgetAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
	if _, err := d.l.ForgetAll(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := d.edit("3", "one", "1")
	wantError(t, err, filestate.ErrNotRead)
}
