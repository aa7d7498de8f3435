package nodes

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codehand/server/state"
)

func (r rig) share(name string, capacity int) *Nodes {
	r.Helper()
	n, err := Join(r.Context(), Options{
		Store: r.store, Name: name, Capacity: capacity, Shared: true, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// placed has two nodes, and a principal whom the first that is returned serves.
func (r rig) placed() (owner, other *Nodes, at Owner) {
	r.Helper()
	a, b := r.share("a", 100), r.share("b", 100)
	if at = r.owner(a, "alice"); at.Node == "b" {
		a, b = b, a
	}
	r.owner(a, "alice") // claims it
	synctest.Wait()
	return a, b, at
}

func (r rig) holds(n *Nodes, may func() error, want bool) {
	r.Helper()
	if err := may(); (err == nil) != want || err != nil && !errors.Is(err, state.ErrDown) {
		r.Errorf("%s may change files: %v, want %v", n.Name(), err, want)
	}
}

// A principal whose node died is served by the node that is asked, within 10 s. The dead one, if it only stood still,
// changes nothing more when it goes on, also where it has not heard of that yet.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b, at := r.placed()
		may := a.Holds("alice")
		r.holds(a, may, true)
		if _, err := b.Successor(r.Context(), at, true); !errors.Is(err, ErrStays) {
			r.Errorf("of a node that lives: %v", err)
		}
		if got, err := b.Successor(r.Context(), at, false); err != nil || got != at {
			r.Errorf("of a node that lives, which did not get the request: %+v, %v", got, err)
		}
		var taken []string
		b.OnTaken(func(who string) { taken = append(taken, who) })

		a.Close() // it stands still
		died := time.Now()
		now, err := b.Successor(r.Context(), at, true)
		if err != nil || now.Node != b.Name() || now.Epoch != at.Epoch+1 || time.Since(died) >= 10*time.Second {
			r.Fatalf("after %s it is at %+v, %v", time.Since(died), now, err)
		}
		r.holds(a, may, false)
		if len(taken) != 1 || taken[0] != "alice" {
			r.Errorf("it was told of %q", taken)
		}
		mayB := b.Holds("alice")
		r.holds(b, mayB, true)
		r.must(a.hold.Renew(r.Context())) // it goes on, and its watch has told it nothing
		r.holds(a, may, false)
		if here, err := a.Here(r.Context(), "alice", at.Epoch); here || err != nil {
			r.Errorf("it serves: %v, %v", here, err)
		}
		if got := r.owner(a, "alice"); got != now {
			r.Errorf("it takes %+v for the owner", got)
		}
		r.holds(a, may, false)
		r.holds(b, mayB, true)
		a.hold.GiveBack(context.Background())
		r.leave(b)
	})
}

// A node whose record ended, and whom nobody replaced, claims its places anew: then it goes on, and who was about to
// take one over is too late.
func TestClaimedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b, at := r.placed()
		may := a.Holds("alice")
		told := 0
		a.OnTaken(func(string) { told++ })
		a.Close()
		time.Sleep(time.Minute)
		seen, err := readPlace(r.Context(), r.store, placeKey("alice")) // as b would, and then stands still
		r.must(err)
		r.must(a.hold.Renew(r.Context()))
		r.holds(a, may, false)
		if here, err := a.Here(r.Context(), "alice", at.Epoch); !here || err != nil {
			r.Errorf("it does not serve: %v, %v", here, err)
		}
		r.holds(a, may, true)
		if told != 0 {
			r.Error("it was told of a principal that it had all the time")
		}
		if err := put(r.Context(), r.store, seen, Owner{Who: "alice", Node: "b"}); !errors.Is(err, errRace) {
			r.Errorf("a late take-over: %v", err)
		}
		if got := r.owner(b, "alice"); got != at {
			r.Errorf("%+v became %+v", at, got)
		}
		a.hold.GiveBack(context.Background())
		r.leave(b)
	})
}

// Calls that run go on by themselves after the Store was away.
func TestKeptPlaces(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b, _ := r.placed()
		may := a.Holds("alice")
		r.must(r.store.Delete(r.Context(), nodeKey(a.Name()))) // as if it had ended
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if term, _, err := a.hold.Term(); term != 2 || err != nil {
			r.Errorf("the term is %d, %v", term, err)
		}
		r.holds(a, may, true)
		r.leave(a)
		r.leave(b)
	})
}

// A node that was restarted serves its people again, and is told of them; who waits for it hears that.
func TestRestartedShared(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b, at := r.placed()
		a.Close()
		go func() {
			time.Sleep(holdAt)
			a.hold.GiveBack(r.Context())
		}()
		done := make(chan Owner)
		go func() {
			now, err := b.Successor(r.Context(), at, true)
			if err != nil {
				r.Error(err)
			}
			done <- now
		}()
		again := r.share(a.Name(), 100)
		told := 0
		again.OnTaken(func(string) { told++ })
		if now := <-done; now != at {
			r.Errorf("it is at %+v", now)
		}
		if here, err := again.Here(r.Context(), "alice", at.Epoch); !here || err != nil || told != 1 {
			r.Errorf("the new process serves: %v, %v; it was told %d times", here, err, told)
		}
		r.leave(again)
		r.leave(b)
	})
}

// holdAt is between two looks at a record.
const holdAt = 300 * time.Millisecond

// A node that drains gives its people to others when their calls have ended, at the latest after 30 s.
func TestGiveBack(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b, at := r.placed()
		var busy atomic.Bool
		busy.Store(true)
		a.OnDrain(func(who string) bool { return busy.Load() })
		moved := 0
		a.OnMoved(func(string) { moved++ })
		r.must(Drain(r.Context(), r.store, a.Name(), true))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := r.owner(b, "alice"); got != at || moved > 0 {
			r.Errorf("while a call runs, it is at %+v", got)
		}
		busy.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		for _, n := range []*Nodes{a, b} {
			if got := r.owner(n, "alice"); got.Node != b.Name() || moved != 1 {
				r.Errorf("then it is at %+v", got)
			}
		}

		busy.Store(true) // a call that does not end, at the other one
		b.OnDrain(func(string) bool { return true })
		r.must(Drain(r.Context(), r.store, b.Name(), true))
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := r.owner(b, "alice"); got.Node != b.Name() {
			r.Errorf("no other node takes it, and it is at %+v", got)
		}
		r.must(Drain(r.Context(), r.store, a.Name(), false))
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := r.owner(b, "alice"); got.Node != a.Name() {
			r.Errorf("after half a minute it is at %+v", got)
		}
		r.leave(a)
		r.leave(b)
	})
}

// A node that ends gives its people to others before its record is gone.
func TestLeave(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b, _ := r.placed()
		a.Leave()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.owner(b, "alice"); got.Node != b.Name() {
			r.Errorf("it is at %+v", got)
		}
		r.leave(a)
		r.leave(b)
	})
}

// All nodes have the same workspaces, or each its own.
func TestAlike(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a := r.share("a", 1)
		if _, err := Join(r.Context(), Options{Store: r.store, Name: "b", Capacity: 1}); !errors.Is(err, errKinds) {
			r.Errorf("a node with workspaces of its own: %v", err)
		}
		r.leave(a)
		b := r.join("b", 1)
		if b.Holds("alice") != nil {
			r.Error("with workspaces of its own it asks before each change")
		}
		if _, err := b.Successor(r.Context(), Owner{Who: "alice", Node: "a"}, true); !errors.Is(err, ErrStays) {
			r.Errorf("somebody moves: %v", err)
		}
		r.leave(b)
	})
}

// A node whose directory is not that of the others is refused, as when the volume is not mounted.
func TestVolume(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	inBubble(t, func(r rig) {
		join := func(name, volume string) (*Nodes, error) {
			return Join(r.Context(), Options{Store: r.store, Name: name, Capacity: 1, Shared: true, Volume: volume,
				Log: slog.New(slog.DiscardHandler)})
		}
		for range 2 { // also after a restart
			a, err := join("a", dir)
			r.must(err)
			b, err := join("b", dir)
			r.must(err)
			_, err = join("c", other)
			if _, ok := errors.AsType[*VolumeError](err); !ok {
				r.Errorf("another directory: %v", err)
			}
			synctest.Wait()
			if places, err := Owners(r.Context(), r.store); err != nil || len(places) > 0 {
				r.Errorf("places are %+v, %v", places, err)
			}
			r.leave(a)
			r.leave(b)
		}
	})
}
