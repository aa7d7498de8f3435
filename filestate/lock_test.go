package filestate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate"
	"codehand/filestate/journal"
	"codehand/filestate/lock"
)

func TestLockIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lock.New("")
		unlock := hold(t, l, "a")
		var mu sync.Mutex
		var order []int
		for i := range 20 {
			go func() {
				unlock := hold(t, l, "a")
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				unlock()
			}()
			synctest.Wait() // it stands in line now
		}
		unlock()
		synctest.Wait()
		if !slices.IsSorted(order) || len(order) != 20 {
			t.Errorf("served in the order %v", order)
		}
	})
}

func TestLockWaitsTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lock.New("")
		unlock := hold(t, l, "a", "b")
		defer unlock()
		start := time.Now()
		_, err := l.Lock(t.Context(), "c", "b")
		wantError(t, err, lock.ErrLocked)
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		hold(t, l, "c")() // what it held already was given back
	})
}

func TestLockEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lock.New("")
		unlock := hold(t, l, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() {
			_, err := l.Lock(ctx, "a")
			done <- err
		}()
		synctest.Wait()
		cancel(errBroken)
		wantError(t, <-done, errBroken)
		unlock()
		hold(t, l, "a")() // the line is empty again
		_, err := l.Lock(ctx, "a")
		wantError(t, err, errBroken)
	})
}

// A turn that comes at the moment when its waiter gives up goes to the next one.
func TestTurnAndCancelAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lock.New("")
		for range 100 { // the waiter chooses between the two by chance
			unlock := hold(t, l, "a")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if unlock, err := l.Lock(ctx, "a"); err == nil {
					unlock()
				}
			}()
			synctest.Wait()
			cancel()
			unlock()
			synctest.Wait()
		}
		hold(t, l, "a")()
	})
}

func TestUnlockTwiceIsOnce(t *testing.T) {
	t.Parallel()
	l := lock.New("")
	unlock := hold(t, l, "a")
	unlock()
	again := hold(t, l, "a", "a")
	unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second unlock gave another's lock away: %v", err)
	}
	again()
}

// Two Lockers on one directory are as two processes.
func TestLockFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "locks")
	one, two := lock.New(dir), lock.New(dir)
	unlock := hold(t, one, "a")
	ctx, cancel := context.WithCancelCause(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := two.Lock(ctx, "a")
		waiting <- err
	}()
	hold(t, two, "b")()
	cancel(errBroken)
	wantError(t, <-waiting, errBroken)
	unlock()
	hold(t, two, "a")()
	for range 2 { // a lock file of yesterday is removed by the next process, also while others look at it
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 2 {
			t.Fatalf("%d lock files, %v; want 2", len(names), err)
		}
		then := time.Now().Add(-48 * time.Hour)
		for _, e := range names {
			if err := os.Chtimes(filepath.Join(dir, e.Name()), then, then); err != nil {
				t.Fatal(err)
			}
		}
		keep := hold(t, two, "b")
		hold(t, lock.New(dir), "a")()
		keep()
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
}

func TestLockFilesKeepOthersOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var inside, together, done atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		l := lock.New(dir)
		for range 2 {
			all.Go(func() {
				for range 50 {
					unlock := hold(t, l, "a")
					if inside.Add(1) > 1 {
						together.Add(1)
					}
					done.Add(1)
					inside.Add(-1)
					unlock()
				}
			})
		}
	}
	all.Wait()
	if together.Load() > 0 || done.Load() != 400 {
		t.Errorf("%d of %d times two held the lock", together.Load(), done.Load())
	}
}

func TestLockDirectoryCannotBeMade(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("file", "")
	_, err := lock.New(d.path("file/locks")).Lock(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "lock file") {
		t.Errorf("got %v", err)
	}
	d.l = filestate.New(filestate.Options{Dir: d.path("file/locks")})
	if _, err := d.put("a", "x"); err == nil {
		t.Error("a change was made without a lock")
	}
}

// Sessions of one process that add to one file at once lose nothing and do nothing twice.
func TestParallelEdits(t *testing.T) {
	t.Parallel()
	locker := lock.New(t.TempDir())
	share := func(o *filestate.Options) { o.Locker = locker }
	d := newDesk(t, share)
	ledgers := []*filestate.Ledger{d.l, filestate.New(filestate.Options{Locker: locker, Fast: true})}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			for j := range 5 {
				line := fmt.Sprintf("%d-%d\n", i, j)
				f := openFile(t, d.path("a"))
				_, err := ledgers[i%2].Update(t.Context(), journal.By{}, filestate.Edit{File: f, Unseen: true,
					Change: func(old []byte) ([]byte, error) { return append(old, line...), nil }})
				_ = f.Close()
				if err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		})
	}
	all.Wait()
	lines := strings.Split(strings.TrimSpace(d.read("a")), "\n")
	slices.Sort(lines)
	if n := len(slices.Compact(slices.Clone(lines))); n != 200 || len(lines) != 200 {
		t.Errorf("%d lines, %d different ones; 200 were acknowledged", len(lines), n)
	}
	d.noTemps()
}

// Files whose order differs between calls do not make two calls wait for each other.
func TestParallelEditsOfSeveralFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		d.write(name, "")
	}
	if err := os.Link(d.path("a"), d.path("also-a")); err != nil {
		t.Skipf("hard links: %v", err)
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			var edits []filestate.Edit
			for j := range names {
				f := openFile(t, d.path(names[(i+j)%len(names)]))
				defer f.Close()
				edits = append(edits, filestate.Edit{File: f, Unseen: true,
					Change: func(old []byte) ([]byte, error) { return append(old, '.'), nil }})
			}
			if _, err := d.l.Update(t.Context(), journal.By{}, edits...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		d.holds(name, strings.Repeat(".", 12))
	}
}

func hold(t testing.TB, l lock.Locker, keys ...string) (unlock func()) {
	t.Helper()
	unlock, err := l.Lock(t.Context(), keys...)
	if err != nil {
		t.Errorf("lock %v: %v", keys, err)
		return func() {}
	}
	return unlock
}
