package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/state"
)

func contractManyKeys(t *testing.T, s *rig) {
	ctx := t.Context()
	f := "lease"
	if s.clock > 0 {
		f = "job" // the others would end meanwhile
	}
	s.each(t, 2500, func(i int) error { return s.Set(ctx, fmt.Sprintf("lease.p.%d", i), []byte("v")) })
	s.over(t, "lease.p.2499")
	s.each(t, 2500, func(i int) error { return s.Set(ctx, fmt.Sprintf("%s.p.%d", f, 2*i), []byte("v")) })
	check := func() {
		t.Helper()
		got, err := s.Keys(ctx, f+".p")
		must(t, err)
		if len(got) != 2500 || !slices.IsSorted(got) || len(slices.Compact(got)) != 2500 {
			t.Errorf("got %d keys", len(got))
		}
	}
	check()
	if s.restart() {
		check()
	}
	s.each(t, maxKeys+1, func(i int) error { return s.Set(ctx, fmt.Sprintf("sess.p.%06d", i), []byte("v")) })
	got, err := s.Keys(ctx, "sess.p")
	must(t, err)
	if len(got) != maxKeys || got[0] != "sess.p.000000" || got[maxKeys-1] != fmt.Sprintf("sess.p.%06d", maxKeys-1) {
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
	s.each(t, maxRows+10, func(i int) error { return s.Append(ctx, "audit.all", fmt.Appendf(nil, "%d", i)) })
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
	if s.clock > 0 {
		return
	}
	pass(day)
	check("audit.all", 0)
	check("job.p.a", 0)
	check("change.all", 2)
	must(t, s.Append(ctx, "job.p.a", []byte("new")))
	check("job.p.a", 1) // what was over does not come back
	if s.restart() {
		check("job.p.a", 1)
	}
	pass(29 * day)
	check("change.all", 0)
}

func contractWatch(t *testing.T, s *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	must(t, s.Set(ctx, "sess.p.old", []byte("v")))
	must(t, s.Set(ctx, "sess.q.old", []byte("v")))
	var told seen
	done := make(chan error)
	go func() { done <- s.Watch(ctx, "sess.p", told.add) }()
	fence := func() { must(t, s.Set(ctx, "sess.p.fence", []byte("v"))) }
	expect := func(want ...string) {
		t.Helper()
		s.expect(t, &told, fence, want...)
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
	s.expect(t, &told, nil)
}

// A Watch that stands still delays no writer, and misses nothing that matters.
func contractSlowWatch(t *testing.T, s *rig) {
	ctx := t.Context()
	release := make(chan struct{})
	var told seen
	done := make(chan error)
	go func() {
		done <- s.Watch(ctx, "sess.p", func(k string) {
			<-release
			told.add(k)
		})
	}()
	s.until(t, "the Watch has begun", func() bool { return true })
	for i := range 1000 {
		must(t, s.Set(ctx, fmt.Sprintf("sess.p.k%d", i%10), []byte("v")))
	}
	close(release)
	s.until(t, "ten keys were told", func() bool { return len(told.now()) == 10 })
	must(t, s.Close())
	if err := <-done; !errors.Is(err, state.ErrClosed) {
		t.Errorf("Watch of a closed state.Store ended with %v", err)
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
	var told seen
	done := make(chan error)
	go func() { done <- s.Watch(ctx, "sess.p", told.add) }()
	s.expect(t, &told, nil, "sess.p.b")
	must(t, s.Set(ctx, "sess.p.c", []byte("v")))
	s.expect(t, &told, nil, "sess.p.c")
	cancel()
	must(t, <-done)
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
	if s.clock > 0 { // this family has a sixteenth of all
		n = min(n, 1) * (suiteBytes / maxValue)
	}
	if !errors.Is(full, state.ErrFull) || n < suiteBytes/(maxValue+maxKey)-1 || n > suiteBytes/maxValue+1 {
		t.Fatalf("value %d: %v", n, full)
	}
	for _, err := range []error{
		s.Append(ctx, "job.p.a", large[:maxStreamValue]),
		func() error { _, err := s.Swap(ctx, "kept.p.new", large, 0); return err }(),
	} {
		if err != nil && !errors.Is(err, state.ErrFull) {
			t.Error(err)
		}
	}
	must(t, s.Ping(ctx))
	wantValue(t, s, "kept.p.0", string(large))
	if s.clock == 0 { // three servers refuse these, too
		must(t, s.Set(ctx, "kept.p.0", large)) // no larger than before
		must(t, s.Set(ctx, "kept.p.0", large[:1]))
	}
	must(t, s.Delete(ctx, "kept.p.1"))
	must(t, s.Delete(ctx, "kept.p.2"))
	must(t, s.Set(ctx, "kept.p.new", large))
	if s.clock > 0 {
		return
	}
	if stats := s.Store.(state.Stater).Stats(); stats.Bytes > stats.MaxBytes || stats.MaxBytes != suiteBytes || stats.Down != nil {
		t.Errorf("%+v", stats)
	}
	pass(30 * day) // what is over makes room, too
	for i := range 50 {
		must(t, s.Set(ctx, fmt.Sprintf("call.p.%d", i), large))
	}
}

func contractScoped(t *testing.T, s *rig) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, b := state.Scoped(s, "sess.p.a"), state.Scoped(state.Scoped(s, "sess.p"), "b")
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
		if _, _, err := b.Get(ctx, k); !errors.Is(err, state.ErrKey) {
			t.Errorf("%q reached something: %v", k, err)
		}
		if _, _, err := b.GetAll(ctx, "mode", k); !errors.Is(err, state.ErrKey) {
			t.Errorf("%q reached something with others: %v", k, err)
		}
	}
	if values, _, err := b.GetAll(ctx, "file.x", "mode"); err != nil || string(bytes.Join(values, []byte(" "))) != "3 2" {
		t.Errorf("GetAll: %q, %v", values, err)
	}
	var told seen
	go func() { _ = b.Watch(ctx, "", told.add) }()
	s.expect(t, &told, nil, "file.x", "mode")
	must(t, a.Set(ctx, "mode", []byte("4")))
	must(t, b.Delete(ctx, "file.x"))
	s.expect(t, &told, func() { must(t, b.Set(ctx, "fence", []byte("v"))) }, "file.x")
	if ok, err := b.Swap(ctx, "mode", []byte("5"), wantValue(t, b, "mode", "2")); !ok || err != nil {
		t.Errorf("Swap: %v, %v", ok, err)
	}
	// Streams, too: those of another principal have no name here.
	own := state.Scoped(s, "job.p")
	must(t, own.Append(ctx, "s", []byte("v")))
	must(t, s.Append(ctx, "job.q.s", []byte("w")))
	for _, s := range []struct {
		state.Store
		name string
	}{{own, "s"}, {s, "job.p.s"}} {
		if values, _, err := s.Tail(ctx, s.name, 0, 9); len(values) != 1 || string(values[0]) != "v" || err != nil {
			t.Errorf("the stream %s holds %q, %v", s.name, values, err)
		}
	}
	if _, ok := own.(state.Stater); ok {
		t.Error("a narrowed state.Store tells of all")
	}
	must(t, b.Ping(ctx))
	must(t, b.Close())
	must(t, s.Ping(ctx))
}

// everyOperation runs each method once and returns the errors.
func everyOperation(ctx context.Context, s state.Store) []error {
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
		if !errors.Is(err, state.ErrClosed) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if err := s.Watch(t.Context(), "sess.p", func(string) {}); !errors.Is(err, state.ErrClosed) {
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
	lives := map[string]time.Duration{
		state.Session: suiteSessions, state.Lease: 30 * time.Second, state.Call: time.Hour, state.Token: 0,
	}
	for step := range s.fewer(5000, 600) {
		if s.clock == 0 && r.IntN(250) == 0 {
			s.restart()
		}
		key := fmt.Sprintf("%s.p.%d", []string{state.Session, state.Lease, state.Call, state.Token}[r.IntN(4)], r.IntN(3))
		for k, h := range model {
			if !h.end.IsZero() && !time.Now().Before(h.end) {
				delete(model, k)
			}
		}
		wrote := false
		value := fmt.Appendf(nil, "%d", step)
		steps := 5
		if s.clock > 0 {
			if strings.HasPrefix(key, state.Lease) {
				continue
			}
			steps = 3 // time goes by itself
		}
		switch r.IntN(steps) {
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
			pass(time.Duration(r.Int64N(int64(20 * time.Second))))
			continue
		case 4:
			pass(time.Duration(r.Int64N(int64(20 * time.Minute))))
			continue
		}
		got, rev, err := s.Get(t.Context(), key)
		must(t, err)
		if wrote {
			if rev <= model[key].rev {
				t.Fatalf("step %d: revision %d after %d", step, rev, model[key].rev)
			}
			h := held{value: value, rev: rev}
			if life := lives[key[:strings.IndexByte(key, '.')]]; life > 0 {
				h.end = time.Now().Add(life)
			}
			model[key] = h
		}
		if want := model[key]; !bytes.Equal(got, want.value) || rev != want.rev {
			t.Fatalf("step %d: %s holds %q at %d, want %q at %d", step, key, got, rev, want.value, want.rev)
		}
	}
}
