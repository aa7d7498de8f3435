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

// backends are the Stores that keep the contract. open is called inside a synctest bubble.
var backends = []struct {
	name string
	open func() Store
}{
	{"memory", func() Store { return NewMemory(MemoryOptions{SessionLife: time.Hour}) }},
}

// contract is the suite that every back-end passes, each case with a Store of its own, on a clock that the test moves.
var contract = []struct {
	name string
	test func(*testing.T, Store)
}{
	{"absent", contractAbsent},
	{"revisions", contractRevisions},
	{"copies", contractCopies},
	{"races", contractRaces},
	{"lives", contractLives},
	{"keys", contractKeys},
	{"limits", contractLimits},
	{"streams", contractStreams},
	{"watch", contractWatch},
	{"slow watch", contractSlowWatch},
	{"scoped", contractScoped},
	{"context", contractContext},
	{"closed", contractClosed},
	{"model", contractModel},
}

func TestStore(t *testing.T) {
	t.Parallel()
	for _, b := range backends {
		for _, c := range contract {
			t.Run(b.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := b.open()
					defer s.Close()
					c.test(t, s)
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

func contractAbsent(t *testing.T, s Store) {
	wantValue(t, s, "sess.a", "")
	must(t, s.Delete(t.Context(), "sess.a"))
	keys, err := s.Keys(t.Context(), "sess")
	must(t, err)
	values, last, err := s.Tail(t.Context(), "job.a", 7, 10)
	must(t, err)
	if len(keys) != 0 || len(values) != 0 || last != 7 {
		t.Errorf("got keys %v, values %v, position %d", keys, values, last)
	}
	must(t, s.Ping(t.Context()))
}

func contractRevisions(t *testing.T, s Store) {
	ctx := t.Context()
	ok, err := s.Swap(ctx, "sess.a", []byte("1"), 99)
	must(t, err)
	if ok {
		t.Error("a swap of an absent key with a revision succeeded")
	}
	ok, err = s.Swap(ctx, "sess.a", []byte("1"), 0)
	must(t, err)
	if !ok {
		t.Error("a swap of an absent key with 0 failed")
	}
	first := wantValue(t, s, "sess.a", "1")
	if ok, _ = s.Swap(ctx, "sess.a", []byte("2"), 0); ok {
		t.Error("a swap of a present key with 0 succeeded")
	}
	if ok, _ = s.Swap(ctx, "sess.a", []byte("2"), first); !ok {
		t.Error("a swap with the right revision failed")
	}
	second := wantValue(t, s, "sess.a", "2")
	must(t, s.Set(ctx, "sess.a", []byte("2")))
	third := wantValue(t, s, "sess.a", "2")
	must(t, s.Delete(ctx, "sess.a"))
	if ok, _ = s.Swap(ctx, "sess.a", []byte("3"), third); ok {
		t.Error("a swap of a deleted key with its last revision succeeded")
	}
	must(t, s.Set(ctx, "sess.a", []byte("3")))
	if fourth := wantValue(t, s, "sess.a", "3"); !(first < second && second < third && third < fourth) {
		t.Errorf("revisions do not grow: %d %d %d %d", first, second, third, fourth)
	}
}

func contractCopies(t *testing.T, s Store) {
	in := []byte("abc")
	must(t, s.Set(t.Context(), "sess.a", in))
	must(t, s.Append(t.Context(), "job.a", in))
	in[0] = 'X'
	out, _, _ := s.Get(t.Context(), "sess.a")
	out[1] = 'X'
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
func contractRaces(t *testing.T, s Store) {
	const workers, steps = 16, 50
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

func contractLives(t *testing.T, s Store) {
	ctx := t.Context()
	for _, k := range []string{"sess.a", "lease.a", "ask.a", "token.a", "call.a.b"} {
		must(t, s.Set(ctx, k, []byte("v")))
	}
	must(t, s.Append(ctx, "job.a", []byte("v")))
	time.Sleep(29 * time.Second)
	rev := wantValue(t, s, "lease.a", "v")
	if ok, err := s.Swap(ctx, "lease.a", []byte("w"), rev); !ok || err != nil {
		t.Fatal(ok, err)
	}
	time.Sleep(29 * time.Second)
	wantValue(t, s, "lease.a", "w") // its life started anew
	time.Sleep(2 * time.Second)
	wantValue(t, s, "lease.a", "")
	if ok, err := s.Swap(ctx, "lease.a", []byte("x"), 0); !ok || err != nil {
		t.Errorf("a swap with 0 after the end: %v, %v", ok, err)
	}
	must(t, s.Delete(ctx, "lease.a"))
	must(t, s.Set(ctx, "lease.a", []byte("y")))
	time.Sleep(10 * time.Minute)
	wantValue(t, s, "lease.a", "")
	wantValue(t, s, "ask.a", "")
	wantValue(t, s, "call.a.b", "")
	wantValue(t, s, "sess.a", "v")
	time.Sleep(time.Hour)
	wantValue(t, s, "sess.a", "")
	if values, _, err := s.Tail(ctx, "job.a", 0, 1); len(values) != 1 || err != nil {
		t.Errorf("the stream ended early: %v", err)
	}
	time.Sleep(24 * time.Hour)
	if values, _, err := s.Tail(ctx, "job.a", 0, 1); len(values) != 0 || err != nil {
		t.Errorf("the stream did not end: %q, %v", values, err)
	}
	time.Sleep(10 * 365 * 24 * time.Hour)
	wantValue(t, s, "token.a", "v")
}

func contractKeys(t *testing.T, s Store) {
	ctx := t.Context()
	for _, k := range []string{"sess.p.b", "sess.p.a.x", "sess.pp.a", "sess.p", "job.p.a"} {
		must(t, s.Set(ctx, k, []byte("v")))
	}
	got, err := s.Keys(ctx, "sess.p")
	must(t, err)
	if want := []string{"sess.p.a.x", "sess.p.b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range maxKeys + 5 {
		must(t, s.Set(ctx, fmt.Sprintf("kept.p.%06d", i), []byte("v")))
	}
	got, err = s.Keys(ctx, "kept")
	must(t, err)
	if len(got) != maxKeys || got[0] != "kept.p.000000" || !slices.IsSorted(got) {
		t.Errorf("got %d keys, from %s", len(got), got[0])
	}
}

func contractLimits(t *testing.T, s Store) {
	ctx := t.Context()
	good := []string{"sess.a", "sess.A-_9.b.c.d.e.f.g", "sess." + strings.Repeat("k", maxKey-5)}
	bad := []string{
		"", "sess", ".", "sess.", ".sess", "sess..a", "sess.a.b.c.d.e.f.g.h", "sess.ä", "sess.a b", "sess.a*", "sess.a/b",
		"sess.>", "sess.\x00", "sess." + strings.Repeat("k", maxKey-4), "nofamily.a",
	}
	for _, k := range good {
		must(t, s.Set(ctx, k, []byte("v")))
	}
	for _, k := range bad {
		if err := s.Set(ctx, k, []byte("v")); !errors.Is(err, ErrKey) {
			t.Errorf("Set %q: %v", k, err)
		}
		if _, err := s.Swap(ctx, k, []byte("v"), 0); !errors.Is(err, ErrKey) {
			t.Errorf("Swap %q: %v", k, err)
		}
		if err := s.Append(ctx, k, []byte("v")); !errors.Is(err, ErrKey) {
			t.Errorf("Append %q: %v", k, err)
		}
		if k == "nofamily.a" {
			continue // a key that is nowhere can be looked for
		}
		if _, _, err := s.Get(ctx, k); !errors.Is(err, ErrKey) {
			t.Errorf("Get %q: %v", k, err)
		}
		if err := s.Delete(ctx, k); !errors.Is(err, ErrKey) {
			t.Errorf("Delete %q: %v", k, err)
		}
		if _, _, err := s.Tail(ctx, k, 0, 1); !errors.Is(err, ErrKey) {
			t.Errorf("Tail %q: %v", k, err)
		}
		if k == "sess" {
			continue // a prefix, but no key
		}
		if _, err := s.Keys(ctx, k); !errors.Is(err, ErrKey) {
			t.Errorf("Keys %q: %v", k, err)
		}
		if err := s.Watch(ctx, k, func(string) {}); !errors.Is(err, ErrKey) {
			t.Errorf("Watch %q: %v", k, err)
		}
	}
	must(t, s.Set(ctx, "sess.a", make([]byte, maxValue)))
	must(t, s.Append(ctx, "job.a", make([]byte, maxStreamValue)))
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

func contractStreams(t *testing.T, s Store) {
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

func contractWatch(t *testing.T, s Store) {
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
func contractSlowWatch(t *testing.T, s Store) {
	ctx := t.Context()
	release := make(chan struct{})
	var seen []string
	done := make(chan error)
	go func() {
		done <- s.Watch(ctx, "sess", func(k string) {
			<-release
			seen = append(seen, k)
		})
	}()
	synctest.Wait()
	for i := range 1000 {
		must(t, s.Set(ctx, fmt.Sprintf("sess.k%d", i%10), []byte("v")))
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

func contractScoped(t *testing.T, s Store) {
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
	must(t, b.Append(ctx, "s", []byte("v")))
	if values, _, err := s.Tail(ctx, "sess.p.b.s", 0, 1); len(values) != 1 || err != nil {
		t.Errorf("the stream holds %q, %v", values, err)
	}
	if values, _, err := b.Tail(ctx, "s", 0, 1); len(values) != 1 || err != nil {
		t.Errorf("the stream holds %q, %v", values, err)
	}
	must(t, b.Ping(ctx))
	must(t, b.Close())
	must(t, s.Ping(ctx))
}

// everyOperation runs each method once and returns the errors.
func everyOperation(ctx context.Context, s Store) []error {
	_, _, get := s.Get(ctx, "sess.a")
	_, swap := s.Swap(ctx, "sess.a", []byte("v"), 0)
	_, keys := s.Keys(ctx, "sess")
	_, _, tail := s.Tail(ctx, "job.a", 0, 1)
	return []error{
		get, swap, keys, tail, s.Set(ctx, "sess.a", []byte("v")), s.Delete(ctx, "sess.a"), s.Append(ctx, "job.a", []byte("v")), s.Ping(ctx),
	}
}

func contractContext(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range everyOperation(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if err := s.Watch(ctx, "sess", func(string) {}); err != nil {
		t.Errorf("Watch: %v", err)
	}
}

func contractClosed(t *testing.T, s Store) {
	must(t, s.Set(t.Context(), "sess.a", []byte("v")))
	must(t, s.Close())
	must(t, s.Close())
	for i, err := range everyOperation(t.Context(), s) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if err := s.Watch(t.Context(), "sess", func(string) {}); !errors.Is(err, ErrClosed) {
		t.Errorf("Watch: %v", err)
	}
}

// contractModel compares random operations, with time passing, with a plain map.
func contractModel(t *testing.T, s Store) {
	type held struct {
		value []byte
		rev   uint64
		end   time.Time
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	model := map[string]held{}
	lifetimes := lives(time.Hour)
	for step := range 5000 {
		key := fmt.Sprintf("%s.%d", []string{Session, Lease, Call, Token}[r.IntN(4)], r.IntN(3))
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
			if life := lifetimes[family(key)]; life > 0 {
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
	m := NewMemory(MemoryOptions{}).(*memory)
	for range 1000 {
		must(t, m.Set(t.Context(), "sess.a", []byte("v")))
		must(t, m.Delete(t.Context(), "sess.a"))
	}
	if len(m.ends) > 1 {
		t.Errorf("%d deadlines for one key", len(m.ends))
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
