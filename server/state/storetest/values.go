package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codehand/server/state"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantValue(t *testing.T, s state.Store, key, want string) uint64 {
	t.Helper()
	v, rev, err := s.Get(t.Context(), key)
	must(t, err)
	if string(v) != want || (rev == 0) != (want == "") {
		t.Fatalf("%s holds %q at revision %d, want %q", key, v, rev, want)
	}
	return rev
}

// wantSwap swaps and checks who won.
func wantSwap(t *testing.T, s state.Store, key, value string, rev uint64, want bool) {
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
		if err := s.Set(ctx, "sess.a", make([]byte, size)); !errors.Is(err, state.ErrSize) {
			t.Errorf("Set of %d bytes: %v", size, err)
		}
		if _, err := s.Swap(ctx, "sess.a", make([]byte, size), 0); !errors.Is(err, state.ErrSize) {
			t.Errorf("Swap of %d bytes: %v", size, err)
		}
	}
	for _, size := range []int{0, maxStreamValue + 1} {
		if err := s.Append(ctx, "job.a", make([]byte, size)); !errors.Is(err, state.ErrSize) {
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
	s.over(t, "lease.p.b")
	same("3", "", "1", "", "", "1")
	if s.restart() {
		same("3", "", "1", "", "", "1")
	}
	if values, revs, err := s.GetAll(ctx); len(values)+len(revs) != 0 || err != nil {
		t.Errorf("no keys hold %q, %v, %v", values, revs, err)
	}
	if _, _, err := s.GetAll(ctx, "sess.p.a", "sess.p..b"); !errors.Is(err, state.ErrKey) {
		t.Errorf("a bad key among good ones: %v", err)
	}

	steps := s.fewer(500, 100)
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
	key := "lease.p.a"
	write := func(value string) {
		t.Helper()
		must(t, s.Set(t.Context(), key, []byte(value)))
		seen = append(seen, wantValue(t, s, key, value))
		if n := len(seen); n > 1 && seen[n-1] <= seen[n-2] {
			t.Errorf("revisions do not grow: %v", seen)
		}
		for _, old := range seen[:len(seen)-1] {
			wantSwap(t, s, key, "stolen", old, false)
		}
	}
	write("1")
	write("2")
	must(t, s.Delete(t.Context(), "lease.p.a"))
	for _, old := range seen {
		wantSwap(t, s, key, "stolen", old, false)
	}
	write("3")
	s.over(t, "lease.p.a")
	wantSwap(t, s, "lease.p.a", "stolen", seen[2], false)
	if s.clock > 0 {
		key, seen = "token.a", nil // a lease would end over the restart
	}
	write("4")
	if s.restart() {
		wantSwap(t, s, key, "5", seen[len(seen)-1], true) // the same life
		seen = append(seen, wantValue(t, s, key, "5"))
		must(t, s.Delete(t.Context(), key))
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
	const workers = 16
	steps := s.fewer(200, 25)
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
	if wins.Load() != int64(workers*steps) {
		t.Errorf("%d wins", wins.Load())
	}
}

func contractLives(t *testing.T, s *rig) {
	if s.clock > 0 {
		return // contractOwnLives
	}
	ctx := t.Context()
	for i := range 100 {
		must(t, s.Set(ctx, fmt.Sprintf("lease.p.%d", i), []byte("v")))
		pass(time.Millisecond)
	}
	pass(30*time.Second - 100*time.Millisecond - 1)
	if keys, _ := s.Keys(ctx, "lease.p"); len(keys) != 100 {
		t.Errorf("%d of 100 keys are left before their end", len(keys))
	}
	pass(time.Second)
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
		pass(time.Until(start.Add(c.life - time.Second)))
		wantValue(t, s, c.key, "v")
		pass(2 * time.Second)
		wantValue(t, s, c.key, "")
	}
	wantValue(t, s, "call.p.a", "")
	pass(10 * 365 * day)
	wantValue(t, s, "token.a", "v")
}

// Lives that no test can move end by the engine's clock: never early, also over a restart, and what has none stays.
func contractOwnLives(t *testing.T, s *rig) {
	if s.clock == 0 {
		return
	}
	ctx := t.Context()
	const keys = 20
	name := func(i int) string { return fmt.Sprintf("lease.p.%d", i) }
	written := map[string]time.Time{} // before the last write of each
	write := func(key string) {
		written[key] = time.Now()
		must(t, s.Set(ctx, key, []byte("v")))
	}
	ended := func() {
		t.Helper()
		for len(written) > 0 {
			for key, at := range written {
				_, rev, err := s.Get(ctx, key)
				must(t, err)
				lived := time.Since(at)
				switch {
				case rev == 0 && lived < s.clock:
					t.Errorf("%s ended after %v, early", key, lived)
				case rev != 0 && lived < longest:
					continue
				case rev != 0:
					t.Fatalf("%s lives for %v", key, lived)
				}
				delete(written, key)
			}
			pass(10 * time.Millisecond)
		}
	}
	must(t, s.Set(ctx, "token.a", []byte("v")))
	must(t, s.Append(ctx, "job.p.a", []byte("v")))
	for i := range keys {
		write(name(i))
	}
	pass(s.clock / 2)
	write(name(0)) // anew
	if _, rev, err := s.Get(ctx, name(1)); err != nil {
		t.Fatal(err)
	} else if rev != 0 { // a slow machine may be late
		written[name(1)] = time.Now()
		if ok, err := s.Swap(ctx, name(1), []byte("w"), rev); err != nil || !ok {
			delete(written, name(1))
		}
		wantSwap(t, s, name(2), "x", 1, false) // a lost Swap renews nothing
	}
	ended()
	wantSwap(t, s, name(0), "again", 0, true)
	write(name(3))
	if s.restart() {
		ended()
	}
	wantValue(t, s, "token.a", "v")
	if values, _, err := s.Tail(ctx, "job.p.a", 0, 1); len(values) != 1 || err != nil {
		t.Errorf("the stream ended early: %q, %v", values, err)
	}
}

func contractRenewed(t *testing.T, s *rig) {
	if s.clock > 0 {
		return // contractOwnLives
	}
	ctx := t.Context()
	must(t, s.Set(ctx, "lease.p.a", []byte("v")))
	pass(29 * time.Second)
	wantSwap(t, s, "lease.p.a", "w", wantValue(t, s, "lease.p.a", "v"), true)
	pass(29 * time.Second)
	wantValue(t, s, "lease.p.a", "w")
	must(t, s.Set(ctx, "lease.p.a", []byte("x")))
	pass(29 * time.Second)
	wantSwap(t, s, "lease.p.a", "y", 0, false) // a lost Swap renews nothing
	pass(2 * time.Second)
	wantValue(t, s, "lease.p.a", "")
}

func contractRestartedLives(t *testing.T, s *rig) {
	if s.clock > 0 {
		return // contractOwnLives
	}
	ctx := t.Context()
	must(t, s.Set(ctx, "lease.p.a", []byte("v")))
	must(t, s.Set(ctx, "token.a", []byte("v")))
	must(t, s.Append(ctx, "job.p.a", []byte("v")))
	pass(20 * time.Second)
	must(t, s.Set(ctx, "lease.p.b", []byte("v")))
	if !s.restart() {
		return
	}
	pass(9 * time.Second)
	wantValue(t, s, "lease.p.a", "v")
	pass(2 * time.Second)
	wantValue(t, s, "lease.p.a", "")
	wantValue(t, s, "lease.p.b", "v")
	pass(day - time.Minute)
	if values, _, err := s.Tail(ctx, "job.p.a", 0, 1); len(values) != 1 || err != nil {
		t.Errorf("the stream ended early: %q, %v", values, err)
	}
	pass(time.Minute)
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
	if s.clock == 0 {
		pass(30*time.Second - 1)
		wantSwap(t, s, "lease.p.a", "x", 0, false)
	}
	s.over(t, "lease.p.a")
	wantSwap(t, s, "lease.p.a", "x", 0, true)
	wantValue(t, s, "lease.p.a", "x")
}

func contractNothingLeft(t *testing.T, s *rig) {
	ctx := t.Context()
	for i := range s.fewer(5000, 300) {
		wantSwap(t, s, fmt.Sprintf("lease.p.%d", i), "v", 0, true)
		must(t, s.Delete(ctx, fmt.Sprintf("lease.p.%d", i)))
		wantSwap(t, s, "token.a", "v", 0, true)
		must(t, s.Delete(ctx, "token.a"))
	}
	s.over(t, "lease.p.0")
	for range 100 { // each operation removes some of what is over
		must(t, s.Ping(ctx))
	}
	if stats := s.Store.(state.Stater).Stats(); s.clock == 0 && (stats.Keys != 0 || stats.Bytes != 0 || stats.Streams != 0) {
		t.Errorf("after all was deleted: %+v", stats)
	}
	if s.traces == nil {
		return
	}
	if n := s.traces(s.Store); n > 100 {
		t.Errorf("%d traces of keys are left", n)
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
			if !errors.Is(err, state.ErrKey) {
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
			if !errors.Is(err, state.ErrKey) {
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
	for family, global := range map[string]bool{
		state.Session: false, state.Call: false, state.Job: false, state.Lease: false, state.Kept: false,
		state.Ask: true, state.Wish: true, state.Principal: true, state.Token: true, state.TokenUse: true, state.Keyring: true,
		state.Replica: true, state.Browser: true, state.Worker: true, state.Place: true, state.SignIn: true, state.Grant: true,
		state.Client: true,
	} {
		if _, err := s.Keys(ctx, family); errors.Is(err, state.ErrKey) == global {
			t.Errorf("Keys(%q): %v", family, err)
		}
	}
}
