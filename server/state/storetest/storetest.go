// Package storetest is the contract of state.Store as a test: the suite that every back-end passes.
package storetest

import (
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
// Store that syncs to a real disk by that clock should do so seldom.
type Backend struct {
	// Open makes an empty Store.
	Open func(*testing.T, state.Options) state.Store
	// Restart is a kill without goodbye, and another process that opens what is left. It closes the Store that it gets.
	// nil: a Store does not survive its process.
	Restart func(*testing.T, state.Store, state.Options) state.Store
	// Traces counts what a Store still keeps of keys that are gone. nil: not known, and not tested.
	Traces func(state.Store) int
}

// Run runs the suite, each case with a Store of its own, in parallel.
func Run(t *testing.T, b Backend) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := state.Options{SessionLife: suiteSessions, MaxBytes: suiteBytes, Timeout: time.Minute}
				r := &rig{Store: b.Open(t, o), traces: b.Traces}
				r.restart = func() bool {
					if b.Restart == nil {
						return false
					}
					r.Store = b.Restart(t, r.Store, o)
					return true
				}
				defer func() { must(t, r.Close()) }()
				c.test(t, r)
			})
		})
	}
}

// A rig is a Store of a case.
type rig struct {
	state.Store
	restart func() bool           // false: this Store does not survive its process
	traces  func(state.Store) int // nil: not known
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

// pass lets time go by, on the clock of the bubble.
func pass(d time.Duration) { time.Sleep(d) }
