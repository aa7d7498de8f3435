package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// backends are the Stores that keep the contract. open and restart are called inside a synctest bubble. restart is a
// kill without goodbye, and another process that opens what is left; nil: nothing is.
var backends = []struct {
	name    string
	open    func(*testing.T, Options) Store
	restart func(*testing.T, Store, Options) Store
}{
	{"memory", func(t *testing.T, o Options) Store {
		s, err := Open(t.Context(), "memory:", o)
		must(t, err)
		return s
	}, nil},
	// The clock of the suite runs faster than a disk can sync.
	{"embedded", func(t *testing.T, o Options) Store {
		o.Dir, o.Sync = t.TempDir(), time.Hour
		return openReal(t, o)
	}, func(t *testing.T, s Store, o Options) Store {
		o.Dir, o.Sync = copyOfFiles(t, s.(*embedded)), time.Hour
		must(t, s.Close())
		return openReal(t, o)
	}},
	{"embedded, every write synced", func(t *testing.T, o Options) Store {
		return openFake(t, newFakeDisk(nil), o)
	}, func(t *testing.T, s Store, o Options) Store {
		return restartFake(t, s.(*embedded), o)
	}},
}

// A rig is a Store of a case.
type rig struct {
	Store
	restart func() bool // false: this Store does not survive its process
}

// contract is the suite that every back-end passes, each case with a Store of its own, on a clock that the test moves.
var contract = []struct {
	name string
	test func(*testing.T, *rig)
}{
	{"C01-C05 values", contractValues},
	{"several values", contractAll},
	{"C06 races", contractRaces},
	{"C07 revisions", contractRevisions},
	{"C08 lives", contractLives},
	{"C09 a write renews", contractRenewed},
	{"C10-C11 lives go on over a restart", contractRestartedLives},
	{"C12-C13 absent again", contractAbsentAgain},
	{"C14 nothing is left behind", contractNothingLeft},
	{"C15 bad keys", contractBadKeys},
	{"C16 whole tokens", contractTokens},
	{"C17 many keys", contractManyKeys},
	{"C18-C19 watch", contractWatch},
	{"C20 slow watch", contractSlowWatch},
	{"C21 watch after a restart", contractRestartedWatch},
	{"C22-C24 streams", contractStreams},
	{"C24 length and life of streams", contractStreamLives},
	{"C28 full", contractFull},
	{"C29 scoped", contractScoped},
	{"C30 close", contractClosed},
	{"copies", contractCopies},
	{"context", contractContext},
	{"model", contractModel},
}

const (
	suiteSessions = time.Hour // life of family sess in the suite
	suiteBytes    = 16 << 20  // all that a Store of the suite holds
)

func TestStore(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		for _, c := range contract {
			t.Run(b.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := Options{SessionLife: suiteSessions, MaxBytes: suiteBytes, Timeout: time.Minute}
					r := &rig{Store: b.open(t, o)}
					r.restart = func() bool {
						if b.restart == nil {
							return false
						}
						r.Store = b.restart(t, r.Store, o)
						return true
					}
					defer func() { must(t, r.Close()) }()
					c.test(t, r)
				})
			})
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, s Store, key, want string) uint64 {
	t.Helper()
	v, rev, err := s.Get(t.Context(), key)
	must(t, err)
	if string(v) != want || (rev == 0) != (want == "") {
		t.Fatalf("%s holds %q at revision %d, want %q", key, v, rev, want)
	}
	return rev
}

// wantSwap swaps and checks who won.
func wantSwap(t *testing.T, s Store, key, value string, rev uint64, want bool) {
	t.Helper()
	ok, err := s.Swap(t.Context(), key, []byte(value), rev)
	must(t, err)
	if ok != want {
		t.Errorf("Swap of %s at %d gave %v, want %v", key, rev, ok, want)
	}
}

func contractValues(t *testing.T, s *rig) {
	ctx := t.Context()
	wantValue(t, s, "sess.a", "")
	must(t, s.Delete(ctx, "sess.a"))
	keys, err := s.Keys(ctx, "sess.p")
	must(t, err)
	values, last, err := s.Tail(ctx, "job.a", 7, 10)
	must(t, err)
	if len(keys) != 0 || len(values) != 0 || last != 7 {
		t.Errorf("got keys %v, values %v, position %d", keys, values, last)
	}
	must(t, s.Ping(ctx))

	wantSwap(t, s, "sess.a", "1", 99, false) // absent, and no revision fits
	wantSwap(t, s, "sess.a", "1", 0, true)
	first := wantValue(t, s, "sess.a", "1")
	wantSwap(t, s, "sess.a", "2", 0, false)
	wantSwap(t, s, "sess.a", "2", first, true)
	second := wantValue(t, s, "sess.a", "2")
	wantSwap(t, s, "sess.a", "3", first, false)
	must(t, s.Set(ctx, "sess.a", []byte("2")))
	if third := wantValue(t, s, "sess.a", "2"); third <= second {
		t.Errorf("a Set of the same value left revision %d", third)
	}
	must(t, s.Delete(ctx, "sess.a"))
	wantValue(t, s, "sess.a", "")

	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	largest := bytes.Repeat(binary, maxValue/len(binary))
	for i, v := range [][]byte{{0}, {255}, binary, largest} {
		key := fmt.Sprintf("sess.v%d", i)
		must(t, s.Set(ctx, key, v))
		must(t, s.Append(ctx, "job.v", v[:min(len(v), maxStreamValue)]))
		wantValue(t, s, key, string(v))
	}
	s.restart()
	for i, v := range [][]byte{{0}, {255}, binary, largest} {
		if got, _, err := s.Get(ctx, fmt.Sprintf("sess.v%d", i)); err != nil || len(got) != 0 && !bytes.Equal(got, v) {
			t.Errorf("value %d came back as %d other bytes, %v", i, len(got), err)
		}
	}
	for _, size := range []int{0, maxValue + 1} {
		if err := s.Set(ctx, "sess.a", make([]byte, size)); !errors.Is(err, ErrSize) {
			t.Errorf("Set of %d bytes: %v", size, err)
		}
		if _, err := s.Swap(ctx, "sess.a", make([]byte, size), 0); !errors.Is(err, ErrSize) {
			t.Errorf("Swap of %d bytes: %v", size, err)
		}
	}
	for _, size := range []int{0, maxStreamValue + 1} {
		if err := s.Append(ctx, "job.a", make([]byte, size)); !errors.Is(err, ErrSize) {
			t.Errorf("Append of %d bytes: %v", size, err)
		}
	}
}

// A revision is never used again, so what was read in a former life cannot be swapped.
// Several keys are read at once: each value with its own revision, what is absent or over as nothing, and never one
// value from before a write beside another from after it.
func contractAll(t *testing.T, s *rig) {
	ctx := t.Context()
	must(t, s.Set(ctx, "sess.p.a", []byte("1")))
	must(t, s.Set(ctx, "lease.p.b", []byte("2")))
	must(t, s.Set(ctx, "sess.q.c", []byte("3")))
	must(t, s.Set(ctx, "sess.p.d", []byte("4")))
	must(t, s.Delete(ctx, "sess.p.d"))
	keys := []string{"sess.q.c", "sess.p.none", "sess.p.a", "lease.p.b", "sess.p.d", "sess.p.a"}
	same := func(want ...string) {
		t.Helper()
		values, revs, err := s.GetAll(ctx, keys...)
		must(t, err)
		if len(values) != len(keys) || len(revs) != len(keys) {
			t.Fatalf("%d values and %d revisions of %d keys", len(values), len(revs), len(keys))
		}
		for i, key := range keys {
			if rev := wantValue(t, s, key, want[i]); string(values[i]) != want[i] || revs[i] != rev {
				t.Errorf("%s is %q at %d, want %q at %d", key, values[i], revs[i], want[i], rev)
			}
		}
	}
	same("3", "", "1", "2", "", "1")
	time.Sleep(time.Minute) // a lease is over by then
	same("3", "", "1", "", "", "1")
	if s.restart() {
		same("3", "", "1", "", "", "1")
	}
	if values, revs, err := s.GetAll(ctx); len(values)+len(revs) != 0 || err != nil {
		t.Errorf("no keys hold %q, %v, %v", values, revs, err)
	}
	if _, _, err := s.GetAll(ctx, "sess.p.a", "sess.p..b"); !errors.Is(err, ErrKey) {
		t.Errorf("a bad key among good ones: %v", err)
	}

	const steps = 500
	var both sync.WaitGroup
	both.Go(func() {
		for i := range steps { // x is written first, so it is never behind y
			v := fmt.Appendf(nil, "%03d", i)
			if err := errors.Join(s.Set(ctx, "sess.p.x", v), s.Set(ctx, "sess.p.y", v)); err != nil {
				t.Error(err)
			}
		}
	})
	for range steps {
		values, _, err := s.GetAll(ctx, "sess.p.x", "sess.p.y")
		must(t, err)
		if bytes.Compare(values[0], values[1]) < 0 {
			t.Fatalf("x is %q and y %q: they are of two moments", values[0], values[1])
		}
	}
	both.Wait()
}

func contractRevisions(t *testing.T, s *rig) {
	var seen []uint64
	write := func(value string) {
		t.Helper()
		must(t, s.Set(t.Context(), "lease.p.a", []byte(value)))
		seen = append(seen, wantValue(t, s, "lease.p.a", value))
		if n := len(seen); n > 1 && seen[n-1] <= seen[n-2] {
			t.Errorf("revisions do not grow: %v", seen)
		}
		for _, old := range seen[:len(seen)-1] {
			wantSwap(t, s, "lease.p.a", "stolen", old, false)
		}
	}
	write("1")
	write("2")
	must(t, s.Delete(t.Context(), "lease.p.a"))
	for _, old := range seen {
		wantSwap(t, s, "lease.p.a", "stolen", old, false)
	}
	write("3")
	time.Sleep(time.Minute)
	wantSwap(t, s, "lease.p.a", "stolen", seen[2], false)
	write("4")
	if s.restart() {
		wantSwap(t, s, "lease.p.a", "5", seen[3], true) // the same life
		seen = append(seen, wantValue(t, s, "lease.p.a", "5"))
		must(t, s.Delete(t.Context(), "lease.p.a"))
		s.restart()
		write("6")
	}
}

func contractCopies(t *testing.T, s *rig) {
	in := []byte("abc")
	must(t, s.Set(t.Context(), "sess.a", in))
	must(t, s.Append(t.Context(), "job.a", in))
	in[0] = 'X'
	out, _, _ := s.Get(t.Context(), "sess.a")
	out[1] = 'X'
	all, _, _ := s.GetAll(t.Context(), "sess.a")
	all[0][2] = 'X'
	wantValue(t, s, "sess.a", "abc")
	for range 2 {
		values, _, err := s.Tail(t.Context(), "job.a", 0, 1)
		must(t, err)
		if string(values[0]) != "abc" {
			t.Errorf("the stream holds %q", values[0])
		}
		values[0][0] = 'Y'
	}
}

// Of 16 who swap with the same revision exactly one wins, so a counter loses no step.
func contractRaces(t *testing.T, s *rig) {
	const workers, steps = 16, 200
	var wins atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range steps {
				for {
					v, rev, err := s.Get(t.Context(), "sess.n")
					if err != nil {
						t.Error(err)
						return
					}
					ok, err := s.Swap(t.Context(), "sess.n", append(v, '.'), rev)
					if err != nil {
						t.Error(err)
						return
					}
					if ok {
						wins.Add(1)
						break
					}
				}
			}
		})
	}
	wg.Wait()
	wantValue(t, s, "sess.n", strings.Repeat(".", workers*steps))
	if wins.Load() != workers*steps {
		t.Errorf("%d wins", wins.Load())
	}
}

func contractLives(t *testing.T, s *rig) {
	ctx := t.Context()
	for i := range 100 {
		must(t, s.Set(ctx, fmt.Sprintf("lease.p.%d", i), []byte("v")))
		time.Sleep(time.Millisecond)
	}
	time.Sleep(30*time.Second - 100*time.Millisecond - 1)
	if keys, _ := s.Keys(ctx, "lease.p"); len(keys) != 100 {
		t.Errorf("%d of 100 keys are left before their end", len(keys))
	}
	time.Sleep(time.Second)
	if keys, _ := s.Keys(ctx, "lease.p"); len(keys) != 0 {
		t.Errorf("%d keys are left a second after their end", len(keys))
	}
	for _, k := range []string{"sess.p.a", "ask.a", "token.a", "call.p.a", "wish.a", "tokenuse.a"} {
		must(t, s.Set(ctx, k, []byte("v")))
	}
	start := time.Now()
	for _, c := range []struct {
		key  string
		life time.Duration
	}{{"wish.a", time.Minute}, {"ask.a", 10 * time.Minute}, {"sess.p.a", suiteSessions}, {"tokenuse.a", 40 * day}} {
		time.Sleep(time.Until(start.Add(c.life - time.Second)))
		wantValue(t, s, c.key, "v")
		time.Sleep(2 * time.Second)
		wantValue(t, s, c.key, "")
	}
	wantValue(t, s, "call.p.a", "")
	time.Sleep(10 * 365 * day)
	wantValue(t, s, "token.a", "v")
}

func contractRenewed(t *testing.T, s *rig) {
	ctx := t.Context()
	must(t, s.Set(ctx, "lease.p.a", []byte("v")))
	time.Sleep(29 * time.Second)
	wantSwap(t, s, "lease.p.a", "w", wantValue(t, s, "lease.p.a", "v"), true)
	time.Sleep(29 * time.Second)
	wantValue(t, s, "lease.p.a", "w")
	must(t, s.Set(ctx, "lease.p.a", []byte("x")))
	time.Sleep(29 * time.Second)
	wantSwap(t, s, "lease.p.a", "y", 0, false) // a lost Swap renews nothing
	time.Sleep(2 * time.Second)
	wantValue(t, s, "lease.p.a", "")
}

func contractRestartedLives(t *testing.T, s *rig) {
	ctx := t.Context()
	must(t, s.Set(ctx, "lease.p.a", []byte("v")))
	must(t, s.Set(ctx, "token.a", []byte("v")))
	must(t, s.Append(ctx, "job.p.a", []byte("v")))
	time.Sleep(20 * time.Second)
	must(t, s.Set(ctx, "lease.p.b", []byte("v")))
	if !s.restart() {
		return
	}
	time.Sleep(9 * time.Second)
	wantValue(t, s, "lease.p.a", "v")
	time.Sleep(2 * time.Second)
	wantValue(t, s, "lease.p.a", "")
	wantValue(t, s, "lease.p.b", "v")
	time.Sleep(day - time.Minute)
	if values, _, err := s.Tail(ctx, "job.p.a", 0, 1); len(values) != 1 || err != nil {
		t.Errorf("the stream ended early: %q, %v", values, err)
	}
	time.Sleep(time.Minute)
	s.restart()
	if values, _, err := s.Tail(ctx, "job.p.a", 0, 1); len(values) != 0 || err != nil {
		t.Errorf("the stream did not end: %q, %v", values, err)
	}
	wantValue(t, s, "token.a", "v")
}

func contractAbsentAgain(t *testing.T, s *rig) {
	must(t, s.Set(t.Context(), "lease.p.a", []byte("v")))
	must(t, s.Delete(t.Context(), "lease.p.a"))
	wantSwap(t, s, "lease.p.a", "w", 0, true)
	time.Sleep(30*time.Second - 1)
	wantSwap(t, s, "lease.p.a", "x", 0, false)
	time.Sleep(time.Second)
	wantSwap(t, s, "lease.p.a", "x", 0, true)
	wantValue(t, s, "lease.p.a", "x")
}

func contractNothingLeft(t *testing.T, s *rig) {
	ctx := t.Context()
	for i := range 5000 {
		wantSwap(t, s, fmt.Sprintf("lease.p.%d", i), "v", 0, true)
		must(t, s.Delete(ctx, fmt.Sprintf("lease.p.%d", i)))
		wantSwap(t, s, "token.a", "v", 0, true)
		must(t, s.Delete(ctx, "token.a"))
	}
	time.Sleep(time.Minute)
	for range 5000/sweepStep + 1 { // each operation removes some of what is over
		must(t, s.Ping(ctx))
	}
	if stats := s.Store.(Stater).Stats(); stats.Keys != 0 || stats.Bytes != 0 || stats.Streams != 0 {
		t.Errorf("after all was deleted: %+v", stats)
	}
	m, ok := s.Store.(*memory)
	if !ok {
		m = s.Store.(*embedded).memory
	}
	if ends := len(m.table.ends) + len(m.table.due) + len(m.table.dueToo) + len(m.table.groups); ends > 100 {
		t.Errorf("%d traces of keys are left", ends)
	}
}

func contractBadKeys(t *testing.T, s *rig) {
	ctx := t.Context()
	good := []string{"sess.a", "sess.A-_9.b.c.d.e.f.g", "sess." + strings.Repeat("k", maxKey-5)}
	bad := []string{
		"", "sess", ".", "sess.", ".sess", "sess..a", "sess.a.b.c.d.e.f.g.h", "sess.ä", "sess.a b", "sess.a*", "sess.a/b",
		"sess.>", "sess.\x00", "sess." + strings.Repeat("k", maxKey-4), "nofamily.a", "audit.all", "Sess.a",
	}
	for _, k := range good {
		must(t, s.Set(ctx, k, []byte("v")))
	}
	for _, k := range bad {
		_, swap := s.Swap(ctx, k, []byte("v"), 0)
		_, _, get := s.Get(ctx, k)
		_, _, all := s.GetAll(ctx, k)
		_, keys := s.Keys(ctx, k)
		for what, err := range map[string]error{
			"Set": s.Set(ctx, k, []byte("v")), "Swap": swap, "Get": get, "GetAll": all, "Delete": s.Delete(ctx, k),
			"Keys": keys, "Watch": s.Watch(ctx, k, func(string) {}),
		} {
			if !errors.Is(err, ErrKey) {
				t.Errorf("%s %q: %v", what, k, err)
			}
		}
	}
	for _, k := range append(bad, "sess.a", "audit", "change") {
		if k == "audit.all" {
			continue
		}
		_, _, tail := s.Tail(ctx, k, 0, 1)
		for what, err := range map[string]error{"Append": s.Append(ctx, k, []byte("v")), "Tail": tail} {
			if !errors.Is(err, ErrKey) {
				t.Errorf("%s %q: %v", what, k, err)
			}
		}
	}
}

func contractTokens(t *testing.T, s *rig) {
	ctx := t.Context()
	for _, k := range []string{"sess.p.b", "sess.p.a.x", "sess.pp.a", "sess.p", "job.p.a", "token.a", "tokenuse.a", "lease.path.a", "lease.p.a"} {
		must(t, s.Set(ctx, k, []byte("v")))
	}
	for prefix, want := range map[string][]string{
		"sess.p": {"sess.p.a.x", "sess.p.b"}, "sess.p.a": {"sess.p.a.x"}, "sess.pp": {"sess.pp.a"}, "sess.p.a.x": nil,
		"token": {"token.a"}, "token.a": nil, "lease.path": {"lease.path.a"},
	} {
		got, err := s.Keys(ctx, prefix)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("Keys(%q) = %v, want %v", prefix, got, want)
		}
	}
	// Only a global family may be read whole: no room finds the keys of all principals by mistake.
	for _, f := range families(time.Hour) {
		if _, err := s.Keys(ctx, f.Name); errors.Is(err, ErrKey) == f.Global {
			t.Errorf("Keys(%q): %v", f.Name, err)
		}
	}
}

func contractManyKeys(t *testing.T, s *rig) {
	ctx := t.Context()
	for i := range 2500 {
		must(t, s.Set(ctx, fmt.Sprintf("lease.p.%d", i), []byte("v")))
	}
	time.Sleep(time.Minute)
	for i := range 2500 {
		must(t, s.Set(ctx, fmt.Sprintf("lease.p.%d", 2*i), []byte("v")))
	}
	check := func() {
		got, err := s.Keys(ctx, "lease.p")
		must(t, err)
		if len(got) != 2500 || !slices.IsSorted(got) || len(slices.Compact(got)) != 2500 {
			t.Errorf("got %d keys", len(got))
		}
	}
	check()
	if s.restart() {
		check()
	}
	for i := range maxKeys + 1 {
		must(t, s.Set(ctx, fmt.Sprintf("kept.p.%06d", i), []byte("v")))
	}
	got, err := s.Keys(ctx, "kept.p")
	must(t, err)
	if len(got) != maxKeys || got[0] != "kept.p.000000" || got[maxKeys-1] != fmt.Sprintf("kept.p.%06d", maxKeys-1) {
		t.Errorf("got %d keys, from %s", len(got), got[0])
	}
}

func contractStreams(t *testing.T, s *rig) {
	ctx := t.Context()
	const total = maxStream + 44
	for i := range total {
		must(t, s.Append(ctx, "job.p.a", fmt.Appendf(nil, "%d", i)))
		must(t, s.Append(ctx, "job.p.b", []byte("other")))
	}
	var got []string
	var at uint64
	for {
		values, last, err := s.Tail(ctx, "job.p.a", at, 100)
		must(t, err)
		if len(values) == 0 {
			if last != at {
				t.Errorf("nothing new, but the position is %d, not %d", last, at)
			}
			break
		}
		if len(values) > 100 || last <= at {
			t.Fatalf("%d values, position %d after %d", len(values), last, at)
		}
		for _, v := range values {
			got = append(got, string(v))
		}
		at = last
	}
	if len(got) != maxStream || got[0] != "44" || got[maxStream-1] != fmt.Sprint(total-1) {
		t.Errorf("got %d values from %s to %s", len(got), got[0], got[len(got)-1])
	}
	must(t, s.Append(ctx, "job.p.a", []byte("new")))
	values, _, err := s.Tail(ctx, "job.p.a", at, 1)
	must(t, err)
	if len(values) != 1 || string(values[0]) != "new" {
		t.Errorf("got %q", values)
	}
	if values, _, _ = s.Tail(ctx, "job.p.a", 0, 0); len(values) != 0 {
		t.Errorf("got %d values of 0", len(values))
	}
	// A stream and a key of the same name do not meet.
	wantValue(t, s, "job.p.a", "")
}

// streams of the page are longer and live longer than those of jobs.
func contractStreamLives(t *testing.T, s *rig) {
	ctx := t.Context()
	for i := range maxRows + 10 {
		must(t, s.Append(ctx, "audit.all", fmt.Appendf(nil, "%d", i)))
	}
	must(t, s.Append(ctx, "change.all", []byte("v")))
	must(t, s.Append(ctx, "job.p.a", []byte("v")))
	check := func(name string, want int) {
		t.Helper()
		values, _, err := s.Tail(ctx, name, 0, maxRows+100)
		must(t, err)
		if len(values) != want {
			t.Errorf("%s holds %d values, want %d", name, len(values), want)
		}
	}
	s.restart()
	for _, name := range []string{"audit.all", "change.all", "job.p.a"} {
		must(t, s.Append(ctx, name, []byte("again")))
	}
	check("audit.all", maxRows)
	check("change.all", 2)
	check("job.p.a", 2)
	time.Sleep(day)
	check("audit.all", 0)
	check("job.p.a", 0)
	check("change.all", 2)
	must(t, s.Append(ctx, "job.p.a", []byte("new")))
	check("job.p.a", 1) // what was over does not come back
	if s.restart() {
		check("job.p.a", 1)
	}
	time.Sleep(29 * day)
	check("change.all", 0)
}

func contractWatch(t *testing.T, s *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	must(t, s.Set(ctx, "sess.p.old", []byte("v")))
	must(t, s.Set(ctx, "sess.q.old", []byte("v")))
	var seen []string
	done := make(chan error)
	go func() { done <- s.Watch(ctx, "sess.p", func(k string) { seen = append(seen, k) }) }()
	expect := func(want ...string) {
		t.Helper()
		synctest.Wait()
		if !slices.Equal(seen, want) {
			t.Errorf("saw %v, want %v", seen, want)
		}
		seen = nil
	}
	expect("sess.p.old")
	must(t, s.Set(ctx, "sess.p.new", []byte("v")))
	expect("sess.p.new")
	_, err := s.Swap(ctx, "sess.p.new", []byte("w"), wantValue(t, s, "sess.p.new", "v"))
	must(t, err)
	expect("sess.p.new")
	_, err = s.Swap(ctx, "sess.p.new", []byte("w"), 1)
	must(t, err)
	expect() // it lost
	must(t, s.Delete(ctx, "sess.p.old"))
	expect("sess.p.old")
	must(t, s.Delete(ctx, "sess.p.old"))
	must(t, s.Set(ctx, "sess.q.new", []byte("v")))
	must(t, s.Set(ctx, "sess.p", []byte("v")))
	expect() // nothing below the prefix
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Watch ended with %v", err)
	}
	must(t, s.Set(t.Context(), "sess.p.late", []byte("v")))
	expect()
}

// A Watch that stands still delays no writer, and misses nothing that matters.
func contractSlowWatch(t *testing.T, s *rig) {
	ctx := t.Context()
	release := make(chan struct{})
	var seen []string
	done := make(chan error)
	go func() {
		done <- s.Watch(ctx, "sess.p", func(k string) {
			<-release
			seen = append(seen, k)
		})
	}()
	synctest.Wait()
	for i := range 1000 {
		must(t, s.Set(ctx, fmt.Sprintf("sess.p.k%d", i%10), []byte("v")))
	}
	close(release)
	synctest.Wait()
	slices.Sort(seen)
	if got := slices.Compact(seen); len(got) != 10 {
		t.Errorf("saw %v", got)
	}
	must(t, s.Close())
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Errorf("Watch of a closed Store ended with %v", err)
	}
}

func contractRestartedWatch(t *testing.T, s *rig) {
	must(t, s.Set(t.Context(), "sess.p.a", []byte("v")))
	must(t, s.Set(t.Context(), "sess.p.b", []byte("v")))
	must(t, s.Delete(t.Context(), "sess.p.a"))
	if !s.restart() {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	var seen []string
	done := make(chan error)
	go func() { done <- s.Watch(ctx, "sess.p", func(k string) { seen = append(seen, k) }) }()
	synctest.Wait()
	must(t, s.Set(ctx, "sess.p.c", []byte("v")))
	synctest.Wait()
	cancel()
	must(t, <-done)
	if want := []string{"sess.p.b", "sess.p.c"}; !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
}

// A full Store refuses what would make it larger, and nothing else.
func contractFull(t *testing.T, s *rig) {
	ctx := t.Context()
	large := make([]byte, maxValue)
	var full error
	n := 0
	for ; full == nil; n++ {
		full = s.Set(ctx, fmt.Sprintf("kept.p.%d", n), large)
	}
	if !errors.Is(full, ErrFull) || n < suiteBytes/(maxValue+maxKey)-1 || n > suiteBytes/maxValue+1 {
		t.Fatalf("value %d: %v", n, full)
	}
	for _, err := range []error{
		s.Append(ctx, "job.p.a", large[:maxStreamValue]),
		func() error { _, err := s.Swap(ctx, "kept.p.new", large, 0); return err }(),
	} {
		if err != nil && !errors.Is(err, ErrFull) {
			t.Error(err)
		}
	}
	must(t, s.Ping(ctx))
	wantValue(t, s, "kept.p.0", string(large))
	must(t, s.Set(ctx, "kept.p.0", large)) // no larger than before
	must(t, s.Set(ctx, "kept.p.0", large[:1]))
	must(t, s.Delete(ctx, "kept.p.1"))
	must(t, s.Delete(ctx, "kept.p.2"))
	must(t, s.Set(ctx, "kept.p.new", large))
	if stats := s.Store.(Stater).Stats(); stats.Bytes > stats.MaxBytes || stats.MaxBytes != suiteBytes || stats.Down != nil {
		t.Errorf("%+v", stats)
	}
	time.Sleep(30 * day) // what is over makes room, too
	for i := range 50 {
		must(t, s.Set(ctx, fmt.Sprintf("call.p.%d", i), large))
	}
}

func contractScoped(t *testing.T, s *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, b := Scoped(s, "sess.p.a"), Scoped(Scoped(s, "sess.p"), "b")
	must(t, a.Set(ctx, "mode", []byte("1")))
	must(t, b.Set(ctx, "mode", []byte("2")))
	must(t, b.Set(ctx, "file.x", []byte("3")))
	wantValue(t, s, "sess.p.a.mode", "1")
	wantValue(t, b, "mode", "2")
	for prefix, want := range map[string][]string{"": {"file.x", "mode"}, "file": {"file.x"}} {
		got, err := b.Keys(ctx, prefix)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("Keys(%q) = %v, want %v", prefix, got, want)
		}
	}
	for _, k := range []string{"", ".", "..a.mode"} {
		if _, _, err := b.Get(ctx, k); !errors.Is(err, ErrKey) {
			t.Errorf("%q reached something: %v", k, err)
		}
		if _, _, err := b.GetAll(ctx, "mode", k); !errors.Is(err, ErrKey) {
			t.Errorf("%q reached something with others: %v", k, err)
		}
	}
	if values, _, err := b.GetAll(ctx, "file.x", "mode"); err != nil || string(bytes.Join(values, []byte(" "))) != "3 2" {
		t.Errorf("GetAll: %q, %v", values, err)
	}
	var seen []string
	go func() { _ = b.Watch(ctx, "", func(k string) { seen = append(seen, k) }) }()
	synctest.Wait()
	must(t, a.Set(ctx, "mode", []byte("4")))
	must(t, b.Delete(ctx, "file.x"))
	synctest.Wait()
	if want := []string{"file.x", "mode", "file.x"}; !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
	if ok, err := b.Swap(ctx, "mode", []byte("5"), wantValue(t, b, "mode", "2")); !ok || err != nil {
		t.Errorf("Swap: %v, %v", ok, err)
	}
	// Streams, too: those of another principal have no name here.
	own := Scoped(s, "job.p")
	must(t, own.Append(ctx, "s", []byte("v")))
	must(t, s.Append(ctx, "job.q.s", []byte("w")))
	for _, s := range []struct {
		Store
		name string
	}{{own, "s"}, {s, "job.p.s"}} {
		if values, _, err := s.Tail(ctx, s.name, 0, 9); len(values) != 1 || string(values[0]) != "v" || err != nil {
			t.Errorf("the stream %s holds %q, %v", s.name, values, err)
		}
	}
	if _, ok := own.(Stater); ok {
		t.Error("a narrowed Store tells of all")
	}
	must(t, b.Ping(ctx))
	must(t, b.Close())
	must(t, s.Ping(ctx))
}

// everyOperation runs each method once and returns the errors.
func everyOperation(ctx context.Context, s Store) []error {
	_, _, get := s.Get(ctx, "sess.a")
	_, _, all := s.GetAll(ctx, "sess.a", "sess.b")
	_, swap := s.Swap(ctx, "sess.a", []byte("v"), 0)
	_, keys := s.Keys(ctx, "sess.p")
	_, _, tail := s.Tail(ctx, "job.a", 0, 1)
	return []error{
		get, all, swap, keys, tail, s.Set(ctx, "sess.a", []byte("v")), s.Delete(ctx, "sess.a"), s.Append(ctx, "job.a", []byte("v")), s.Ping(ctx),
	}
}

func contractContext(t *testing.T, s *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range everyOperation(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if err := s.Watch(ctx, "sess.p", func(string) {}); err != nil {
		t.Errorf("Watch: %v", err)
	}
}

func contractClosed(t *testing.T, s *rig) {
	must(t, s.Set(t.Context(), "sess.a", []byte("v")))
	must(t, s.Close())
	must(t, s.Close())
	for i, err := range everyOperation(t.Context(), s) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if err := s.Watch(t.Context(), "sess.p", func(string) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("Watch: %v", err)
	}
}

// contractModel compares random operations, with time passing, with a plain map.
func contractModel(t *testing.T, s *rig) {
	type held struct {
		value []byte
		rev   uint64
		end   time.Time
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	model := map[string]held{}
	lifetimes := newPlan(suiteSessions).families
	for step := range 5000 {
		if r.IntN(250) == 0 {
			s.restart()
		}
		key := fmt.Sprintf("%s.p.%d", []string{Session, Lease, Call, Token}[r.IntN(4)], r.IntN(3))
		for k, h := range model {
			if !h.end.IsZero() && !time.Now().Before(h.end) {
				delete(model, k)
			}
		}
		wrote := false
		value := fmt.Appendf(nil, "%d", step)
		switch r.IntN(5) {
		case 0:
			must(t, s.Set(t.Context(), key, value))
			wrote = true
		case 1:
			rev := []uint64{0, model[key].rev, 1}[r.IntN(3)]
			ok, err := s.Swap(t.Context(), key, value, rev)
			must(t, err)
			if ok != (rev == model[key].rev) {
				t.Fatalf("step %d: Swap at %d gave %v, the revision is %d", step, rev, ok, model[key].rev)
			}
			wrote = ok
		case 2:
			must(t, s.Delete(t.Context(), key))
			delete(model, key)
		case 3:
			time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
			continue
		case 4:
			time.Sleep(time.Duration(r.Int64N(int64(20 * time.Minute))))
			continue
		}
		got, rev, err := s.Get(t.Context(), key)
		must(t, err)
		if wrote {
			if rev <= model[key].rev {
				t.Fatalf("step %d: revision %d after %d", step, rev, model[key].rev)
			}
			h := held{value: value, rev: rev}
			if life := lifetimes[family(key)].Life; life > 0 {
				h.end = time.Now().Add(life)
			}
			model[key] = h
		}
		if want := model[key]; !bytes.Equal(got, want.value) || rev != want.rev {
			t.Fatalf("step %d: %s holds %q at %d, want %q at %d", step, key, got, rev, want.value, want.rev)
		}
	}
}

// A key that comes and goes for ever must not grow the list of what will end.
func TestMemoryDeadlinesStayFew(t *testing.T) {
	t.Parallel()
	m := newMemory(MemoryOptions{})
	for range 1000 {
		must(t, m.Set(t.Context(), "sess.a", []byte("v")))
		must(t, m.Delete(t.Context(), "sess.a"))
	}
	if len(m.table.ends) > 1 {
		t.Errorf("%d deadlines for one key", len(m.table.ends))
	}
}

func TestMemoryClock(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	m := NewMemory(MemoryOptions{Now: func() time.Time { return now }})
	must(t, m.Set(t.Context(), "lease.a", []byte("v")))
	now = now.Add(30*time.Second - 1)
	wantValue(t, m, "lease.a", "v")
	now = now.Add(1)
	wantValue(t, m, "lease.a", "")
}

func TestHash(t *testing.T) {
	t.Parallel()
	if got := Hash("local"); got != "25bf8e1a2393f1108d37029b3df55932" || checkKey(Key(Session, got, Hash(""))) != nil {
		t.Errorf("Hash = %s", got)
	}
}

// FuzzKey checks that no text reaches another scope, whatever a room passes as a key.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "..", "a..b", "\x00", "a.b.c.d.e.f.g.h", "é"} {
		f.Add(s)
	}
	m := NewMemory(MemoryOptions{})
	f.Fuzz(func(t *testing.T, key string) {
		s := Scoped(m, "sess.p.own")
		if err := s.Set(t.Context(), key, []byte("v")); err != nil {
			if !errors.Is(err, ErrKey) {
				t.Fatal(err)
			}
			return
		}
		keys, err := m.Keys(t.Context(), "sess.p.own")
		must(t, err)
		if !slices.Contains(keys, "sess.p.own."+key) {
			t.Fatalf("%q went elsewhere", key)
		}
		must(t, s.Delete(t.Context(), key))
	})
}
