// Package storetest is the contract of state.Store as a test: the suite that every back-end passes.
package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/state"
)

// The numbers of the contract. They are not those of the package, so that a changed one is seen.
const (
	maxKey         = 200 // bytes
	maxValue       = 256 << 10
	maxStreamValue = 64 << 10
	maxStream      = 256    // values of a stream of a job
	maxRows        = 10_000 // values of a stream of the page
	maxKeys        = 10_000 // of one answer of Keys

	day = 24 * time.Hour

	suiteSessions = time.Hour // life of family sess in the suite
	suiteBytes    = 16 << 20  // all that a Store of the suite holds
)

// A Backend makes the Stores of one kind. Its functions run inside a synctest bubble, whose clock goes by years: a
// Store that syncs to a real disk by that clock should do so seldom. With a Clock there is no bubble.
type Backend struct {
	// Open makes an empty Store.
	Open func(*testing.T, state.Options) state.Store
	// Restart is a kill without goodbye, and another process that opens what is left. It closes the Store that it gets.
	// nil: a Store does not survive its process.
	Restart func(*testing.T, state.Store, state.Options) state.Store
	// Traces counts what a Store still keeps of keys that are gone. nil: not known, and not tested.
	Traces func(state.Store) int
	// Clock is the life of family lease in a Store whose engine is another process, with a clock that no test moves. The
	// cases then wait for it, run one after the other, and leave out lives of hours. 0: the Store lives by our clock.
	Clock time.Duration
}

// Run runs the suite, each case with a Store of its own, in parallel.
func Run(t *testing.T, b Backend) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			if b.Clock > 0 {
				b.runCase(t, c.test)
				return
			}
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { b.runCase(t, c.test) })
		})
	}
}

func (b Backend) runCase(t *testing.T, test func(*testing.T, *rig)) {
	o := state.Options{SessionLife: suiteSessions, MaxBytes: suiteBytes, Timeout: time.Minute}
	r := &rig{Store: b.Open(t, o), traces: b.Traces, clock: b.Clock}
	r.restart = func() bool {
		if b.Restart == nil {
			return false
		}
		r.Store = b.Restart(t, r.Store, o)
		return true
	}
	defer func() { must(t, r.Close()) }()
	test(t, r)
}

// A rig is a Store of a case.
type rig struct {
	state.Store
	restart func() bool           // false: this Store does not survive its process
	traces  func(state.Store) int // nil: not known
	clock   time.Duration         // as that of Backend
}

// longest is how long a case waits for an engine with a clock of its own.
const longest = time.Minute

// until waits until something is so.
func (r *rig) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	if r.clock == 0 {
		synctest.Wait()
		if !so() {
			t.Errorf("it is not so: %s", what)
		}
		return
	}
	for end := time.Now().Add(longest); !so(); pass(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so after %v: %s", longest, what)
		}
	}
}

// over lets time go by until a lease that was written before has ended.
func (r *rig) over(t *testing.T, lease string) {
	t.Helper()
	if r.clock == 0 {
		pass(time.Minute)
		return
	}
	r.until(t, lease+" has ended", func() bool {
		_, rev, err := r.Get(t.Context(), lease)
		must(t, err)
		return rev == 0
	})
}

// fewer is a number of steps, where each is a question to another process.
func (r *rig) fewer(steps, there int) int {
	if r.clock > 0 {
		return there
	}
	return steps
}

// each calls do for the numbers below n, beside each other where each call is a question to another process.
func (r *rig) each(t *testing.T, n int, do func(int) error) {
	t.Helper()
	workers := r.fewer(1, 16)
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for i := w; i < n; i += workers {
				if err := do(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	working.Wait()
}

// A seen is what a Watch told.
type seen struct {
	mu   sync.Mutex
	keys []string
}

func (s *seen) add(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, key)
}

// now returns what was told; once each, and sorted.
func (s *seen) now() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(s.keys)))
}

// expect waits for what was told since the last time, and that it is nothing else. fence writes a key that the Watch
// tells last, or nil.
func (r *rig) expect(t *testing.T, s *seen, fence func(), want ...string) {
	t.Helper()
	slices.Sort(want)
	want = slices.Compact(want)
	r.until(t, fmt.Sprintf("%v was told", want), func() bool {
		got := s.now()
		return !slices.ContainsFunc(want, func(k string) bool { return !slices.Contains(got, k) })
	})
	const last = "fence"
	if r.clock > 0 && fence != nil {
		fence()
		r.until(t, "the fence was told", func() bool {
			return slices.ContainsFunc(s.now(), func(k string) bool { return strings.HasSuffix(k, last) })
		})
	}
	got := slices.DeleteFunc(s.now(), func(k string) bool { return strings.HasSuffix(k, last) })
	if !slices.Equal(got, want) {
		t.Errorf("saw %v, want %v", got, want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.clock == 0 && len(s.keys) != len(want) {
		t.Errorf("told %v", s.keys)
	}
	s.keys = nil
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
	{"C08-C11 lives by a clock of its own", contractOwnLives},
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

// pass lets time go by, on the clock of the bubble.
func pass(d time.Duration) { time.Sleep(d) }
