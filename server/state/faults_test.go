package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fails makes operations of some kinds fail with err.
func fails(err error, ops ...string) func(string, string) error {
	return func(op, _ string) error {
		if slices.Contains(ops, op) {
			return err
		}
		return nil
	}
}

// held is what a Store holds, in a form that can be compared: key or stream to revisions and values.
func held(s Store) map[string]string {
	m := s.(*embedded).memory
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for _, g := range m.table.groups {
		for k, e := range g {
			all[k] = fmt.Sprint(e.rev, " ", e.end, " ", string(e.value))
		}
	}
	for name, s := range m.table.streams {
		for _, i := range s.items {
			all["stream "+name] += fmt.Sprint(i.at, " ", string(i.value), "; ")
		}
	}
	return all
}

// wantHeld compares what a Store holds.
func wantHeld(t *testing.T, what string, s Store, want map[string]string) {
	t.Helper()
	if got := held(s); !maps.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// inBubble runs a test on a clock of its own, with the options of an embedded Store.
func inBubble(t *testing.T, test func(*testing.T, Options)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		test(t, Options{Sync: time.Second, Timeout: 2 * time.Second})
	})
}

// A write that the disk refuses is not there, neither now nor after a restart, and the next one is written.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sync  time.Duration
		fail  func(string, string) error
		short int
		want  error
	}{
		{"no space", time.Second, fails(syscall.ENOSPC, "write"), 0, ErrFull},
		{"no space for all of it", time.Second, fails(syscall.ENOSPC, "write"), 30, ErrFull},
		{"broken", time.Second, fails(syscall.EIO, "write"), 0, ErrDown},
		{"broken in the middle", 0, fails(syscall.EIO, "write"), 45, ErrDown},
		{"not synced", 0, fails(syscall.EIO, "sync"), 0, ErrDown},
		{"no space when synced", 0, fails(syscall.ENOSPC, "sync"), 0, ErrFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, o Options) {
				o.Sync = c.sync
				d := newFakeDisk(nil)
				s := openFake(t, d, o)
				must(t, s.Set(t.Context(), "token.a", []byte("before")))
				must(t, s.Append(t.Context(), "job.p.a", []byte("before")))
				want := held(s)
				d.short = c.short
				d.breaks(c.fail)
				_, swap := s.Swap(t.Context(), "token.b", []byte("lost"), 0)
				for _, err := range []error{
					s.Set(t.Context(), "token.a", []byte("lost")), swap, s.Delete(t.Context(), "token.a"),
					s.Append(t.Context(), "job.p.a", []byte("lost")),
				} {
					if !errors.Is(err, c.want) || errors.Is(err, ErrUnsure) {
						t.Errorf("got %v, want %v", err, c.want)
					}
				}
				wantHeld(t, "after the failures", s, want)
				must(t, s.Ping(t.Context())) // the log is whole, so the next write may succeed
				d.breaks(nil)
				must(t, s.Set(t.Context(), "token.c", []byte("after")))
				want = held(s)
				again := restartFake(t, s, o)
				wantHeld(t, "after a restart", again, want)
				must(t, again.Close())
			})
		})
	}
}

// While the contents of the files are unknown, writes are refused and reads go on. When the disk works again, so does
// the Store, with all acknowledged changes in new files.
func TestMend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		sync time.Duration
		fail func(string, string) error
		want error // of the write that meets the failure
	}{
		{"neither written nor cut", time.Second, fails(syscall.EIO, "write", "truncate", "open", "sync"), ErrUnsure},
		{"neither synced nor cut", 0, fails(syscall.EIO, "sync", "truncate"), ErrUnsure},
		{"not synced later", time.Second, fails(syscall.EIO, "sync"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, o Options) {
				o.Sync = c.sync
				d := newFakeDisk(nil)
				s := openFake(t, d, o)
				must(t, s.Set(t.Context(), "token.a", []byte("before")))
				d.short = 50
				d.breaks(c.fail)
				if err := s.Set(t.Context(), "token.b", []byte("unsure")); !errors.Is(err, c.want) {
					t.Errorf("the first write: %v, want %v", err, c.want)
				}
				want := held(s)
				time.Sleep(10 * time.Second)
				for what, err := range map[string]error{
					"Set": s.Set(t.Context(), "token.c", []byte("v")), "Ping": s.Ping(t.Context()), "Stats": s.Stats().Down,
				} {
					if !errors.Is(err, ErrDown) || !errors.Is(err, syscall.EIO) {
						t.Errorf("%s while the disk is broken: %v", what, err)
					}
				}
				wantValue(t, s, "token.a", "before")
				d.breaks(nil)
				time.Sleep(5 * time.Second)
				must(t, s.Ping(t.Context()))
				wantHeld(t, "after the mending", s, want)
				must(t, s.Set(t.Context(), "token.d", []byte("after")))
				want = held(s)
				again := restartFake(t, s, o)
				wantHeld(t, "after a restart", again, want)
				must(t, again.Close())
			})
		})
	}
}

// Whichever operation of the disk fails, once or from then on: what was acknowledged is there, now and after a kill at
// that moment, and what was refused is not.
func TestEveryOperationFails(t *testing.T) {
	t.Parallel()
	for _, lasting := range []bool{false, true} {
		for n := 0; ; n++ {
			met := false
			t.Run(fmt.Sprintf("operation %d, lasting %v", n, lasting), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := Options{Sync: time.Second, Timeout: time.Minute, compact: 2000}
					d := newFakeDisk(nil)
					s := openFake(t, d, o)
					var mu sync.Mutex
					count := 0
					d.short = 60
					d.breaks(func(op, name string) error {
						mu.Lock()
						defer mu.Unlock()
						count++
						if count-1 == n || lasting && count > n {
							met = true
							return fmt.Errorf("%s %s: %w", op, name, syscall.EIO)
						}
						return nil
					})
					failWrites(t, s, o)
					d.breaks(nil)
					time.Sleep(time.Minute)
					synctest.Wait()
					must(t, s.Set(t.Context(), "token.end", []byte("v")))
					want := held(s)
					again := restartFake(t, s, o)
					wantHeld(t, "after a restart", again, want)
					must(t, again.Close())
				})
			})
			if t.Failed() {
				return
			}
			if !met {
				if n < 50 {
					t.Errorf("only %d operations were tried", n)
				}
				break
			}
		}
	}
}

// failWrites writes enough for several compactions. Each write is there or is not, as its error says; if the error says
// unsure, then it is not there yet.
func failWrites(t *testing.T, s *embedded, o Options) {
	t.Helper()
	pad := strings.Repeat("x", 600)
	model, perhaps := map[string]string{}, map[string]string{}
	for i := range 30 {
		key, value := fmt.Sprintf("token.%d", i%4), fmt.Sprint(i, pad)
		err := s.Set(t.Context(), key, []byte(value))
		switch {
		case err == nil:
			model[key] = value
			delete(perhaps, key)
		case errors.Is(err, ErrUnsure):
			perhaps[key] = value
		case errors.Is(err, ErrDown):
		default:
			t.Fatal(err)
		}
		wantValue(t, s, key, model[key])
		synctest.Wait() // a compaction ends
		if i%10 == 9 {
			time.Sleep(2 * time.Second) // a sync, and an attempt to mend
			synctest.Wait()
			again := openFake(t, newFakeDisk(s.writer.disk.(*fakeDisk).content()), o)
			for key, value := range model {
				if v, _, _ := again.Get(t.Context(), key); string(v) != value && (string(v) != perhaps[key] || len(v) == 0) {
					t.Errorf("after write %d and a kill %s holds %.20q, want %.20q", i, key, v, value)
				}
			}
			must(t, again.Close())
		}
	}
}

// A disk that hangs holds no caller longer than the time limit, and no reader at all.
func TestHungDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, o Options) {
		d := newFakeDisk(nil)
		s := openFake(t, d, o)
		must(t, s.Set(t.Context(), "token.a", []byte("v")))
		hung := make(chan struct{})
		d.breaks(func(op, _ string) error {
			if op == "write" {
				<-hung
			}
			return nil
		})
		start := time.Now()
		if err := s.Set(t.Context(), "token.b", []byte("v")); !errors.Is(err, ErrUnsure) {
			t.Errorf("the write that hangs: %v", err)
		}
		if err := s.Set(t.Context(), "token.c", []byte("v")); !errors.Is(err, ErrDown) {
			t.Errorf("a write that waits for it: %v", err)
		}
		if took := time.Since(start); took != 2*o.Timeout {
			t.Errorf("two writes took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Set(ctx, "token.c", []byte("v")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnsure) {
			t.Errorf("a write whose caller left before it began: %v", err)
		}
		wantValue(t, s, "token.a", "v")
		close(hung)
		synctest.Wait()
		wantValue(t, s, "token.b", "v") // it was carried out
		wantValue(t, s, "token.c", "")
		must(t, s.Set(t.Context(), "token.c", []byte("v")))

		slow := make(chan struct{})
		d.breaks(func(op, _ string) error {
			if op == "write" {
				<-slow
			}
			return nil
		})
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Set(ctx, "token.d", []byte("v")); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnsure) {
			t.Errorf("a write whose caller left while it hung: %v", err)
		}
		close(slow)
		must(t, s.Close())
	})
}

// What was written is synced with the write, or within the interval, and not more often.
func TestSync(t *testing.T) {
	inBubble(t, func(t *testing.T, o Options) {
		d := newFakeDisk(nil)
		s := openFake(t, d, o)
		d.tried()
		for range 100 {
			must(t, s.Set(t.Context(), "token.a", []byte("v")))
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		if got := len(d.tried()); got < 4 || got > 5 {
			t.Errorf("%d syncs in 5 s", got)
		}
		time.Sleep(time.Hour)
		if got := d.tried(); len(got) > 1 {
			t.Errorf("syncs of nothing: %v", got)
		}
		must(t, s.Close())

		o.Sync = 0
		d = newFakeDisk(nil)
		s = openFake(t, d, o)
		d.tried()
		for range 10 {
			must(t, s.Set(t.Context(), "token.a", []byte("v")))
		}
		if got := d.tried(); len(got) != 10 {
			t.Errorf("10 writes with %v", got)
		}
		must(t, s.Close())
	})
}

// Compactions in the middle of many writers lose nothing.
func TestCompact(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), Sync: time.Millisecond, compact: 16 << 10}
	s := openReal(t, o)
	compacted := func() bool {
		_, err := os.Stat(s.writer.disk.path(snapshotName))
		return err == nil
	}
	var writing sync.WaitGroup
	for hand := range 8 {
		writing.Go(func() {
			for i := 0; i < 1500 || !compacted(); i++ {
				key := fmt.Sprintf("token.%d-%d", hand, i%50)
				err := s.Set(t.Context(), key, fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", i%200)))
				if i%7 == 0 {
					err = errors.Join(err, s.Delete(t.Context(), key), s.Append(t.Context(), "job.p.a", []byte(key)))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	want := held(s)
	killed := o
	killed.Dir = copyOfFiles(t, s)
	must(t, s.Close())
	if stats := s.Stats(); !errors.Is(stats.Down, ErrClosed) {
		t.Errorf("a closed Store: %+v", stats)
	}
	for what, o := range map[string]Options{"after a kill": killed, "after Close": o} {
		again := openReal(t, o)
		wantHeld(t, what, again, want)
		if stats := again.Stats(); stats.Down != nil || stats.Lag != nil || stats.Cut != 0 {
			t.Errorf("%s: %+v", what, stats)
		}
		must(t, again.Close())
	}
}

// A log that cannot be compacted is a matter of room, not of truth: writes go on, and the next attempt comes later.
func TestLag(t *testing.T) {
	inBubble(t, func(t *testing.T, o Options) {
		o.compact = 1000
		d := newFakeDisk(nil)
		s := openFake(t, d, o)
		d.breaks(func(op, name string) error {
			if op == "open" && strings.HasPrefix(name, snapshotName) {
				return syscall.ENOSPC
			}
			return nil
		})
		write := func() {
			t.Helper()
			for i := range 50 {
				must(t, s.Set(t.Context(), "token.a", fmt.Appendf(nil, "%100d", i)))
				synctest.Wait()
			}
		}
		write()
		if stats := s.Stats(); !errors.Is(stats.Lag, syscall.ENOSPC) || stats.Down != nil {
			t.Errorf("while nothing can be compacted: %+v", stats)
		}
		write()
		if files := d.content(); len(files) != 2 { // the old log and the new one
			t.Errorf("attempts without a pause: %v", slices.Sorted(maps.Keys(files)))
		}
		d.breaks(nil)
		time.Sleep(compactPause)
		write()
		if stats := s.Stats(); stats.Lag != nil || stats.Disk > 5000 {
			t.Errorf("after the pause: %+v", stats)
		}
		must(t, s.Close())
	})
}
