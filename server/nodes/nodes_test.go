package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/state"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A rig is a Store with some nodes.
type rig struct {
	*testing.T
	store state.Store
}

func (r rig) join(name string, capacity int) *Nodes {
	r.Helper()
	n, err := Join(r.Context(), Options{
		Store: r.store, Name: name, Version: "1", Capacity: capacity, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// leave ends a node in good order.
func (r rig) leave(n *Nodes) {
	n.Close()
	n.hold.GiveBack(context.Background())
}

func (r rig) owner(n *Nodes, who string) Owner {
	r.Helper()
	at, err := n.Owner(r.Context(), who)
	if err != nil {
		r.Fatal(err)
	}
	return at
}

func (r rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// inBubble runs a test with a clock of its own, on a Store in memory.
func inBubble(t *testing.T, test func(r rig)) {
	synctest.Test(t, func(t *testing.T) {
		s := state.NewMemory(state.MemoryOptions{})
		test(rig{t, s})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Many first requests at once, at all nodes, make one place for each principal.
func TestOnePlaceForEach(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		all := []*Nodes{r.join("a", 100), r.join("b", 100), r.join("c", 100)}
		var mu sync.Mutex
		at := map[string]map[string]bool{}
		var wg sync.WaitGroup
		for i := range 150 {
			wg.Go(func() {
				who := fmt.Sprint("p", i%30)
				place := r.owner(all[i%3], who)
				mu.Lock()
				defer mu.Unlock()
				if at[who] == nil {
					at[who] = map[string]bool{}
				}
				at[who][fmt.Sprint(place.Node, place.Epoch)] = true
			})
		}
		wg.Wait()
		used := map[string]bool{}
		for who, places := range at {
			if len(places) != 1 {
				r.Errorf("%s has %v", who, slices.Collect(maps.Keys(places)))
			}
			used[r.owner(all[0], who).Node] = true
		}
		if len(used) != 3 {
			r.Errorf("only %v serve anybody", used)
		}
		for _, n := range all {
			r.leave(n)
		}
	})
}

// A place stays while its node is down; the same node, restarted, has it again. A second process of the same name is
// refused while the first lives.
func TestPlacesStay(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b := r.join("a", 1), r.join("b", 100)
		_, err := Join(r.Context(), Options{Store: r.store, Name: "a", Capacity: 1})
		if taken, ok := errors.AsType[*TakenError](err); !ok || taken.Name != "a" || taken.By.PID == 0 {
			r.Fatalf("a second a got %v", err)
		}
		var mine string
		for i := 0; mine == ""; i++ { // one whom both would choose
			if who := fmt.Sprint("p", i); r.owner(b, who).Node == "a" {
				mine = who
			}
		}
		before := r.owner(a, mine)
		a.Close() // as if it were killed: its record ends by itself
		time.Sleep(time.Hour)
		if live, err := Live(r.Context(), r.store); err != nil || len(live) != 1 || live[0].Name != "b" {
			r.Fatalf("there live %v, %v", live, err)
		}
		if got := r.owner(b, mine); got != before {
			r.Errorf("it moved to %+v", got)
		}
		if here, err := a.Here(r.Context(), mine, before.Epoch); err == nil {
			r.Errorf("a process that could not renew its record serves: %v", here)
		}
		again := r.join("a", 1)
		if here, err := again.Here(r.Context(), mine, before.Epoch); !here || err != nil {
			r.Errorf("the restarted node does not have it: %v, %v", here, err)
		}
		r.leave(again)
		r.leave(b)
	})
}

// A full node and one that drains take nobody; without another the principal is refused.
func TestRoomAndDrain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b := r.join("a", 3), r.join("b", 3)
		count := map[string]int{}
		for i := range 6 {
			count[r.owner(a, fmt.Sprint("p", i)).Node]++
		}
		if count["a"] != 3 || count["b"] != 3 {
			r.Errorf("they have %v", count)
		}
		synctest.Wait() // b has heard of all places
		_, err := b.Owner(r.Context(), "one more")
		if full, ok := errors.AsType[*FullError](err); !ok || full.Nodes != 2 {
			r.Errorf("one more got %v", err)
		}
		c := r.join("c", 100)
		r.must(Drain(r.Context(), r.store, "c", true))
		synctest.Wait()
		if !c.Draining() || b.Draining() {
			r.Errorf("c drains: %v, b: %v", c.Draining(), b.Draining())
		}
		if _, err := b.Owner(r.Context(), "one more"); err == nil {
			r.Error("a node that drains took one more")
		}
		r.leave(c)
		c = r.join("c", 100)
		if !c.Draining() {
			r.Error("after a restart it drains no more")
		}
		r.must(Drain(r.Context(), r.store, "c", false))
		synctest.Wait()
		if at := r.owner(b, "one more"); at.Node != "c" {
			r.Errorf("one more is at %+v", at)
		}
		time.Sleep(3 * time.Second) // the next renewal
		live, err := Live(r.Context(), r.store)
		r.must(err)
		if len(live) != 3 || live[2].Principals != 1 || live[0].Principals != 3 || live[2].Draining {
			r.Errorf("they say %+v", live)
		}
		for _, n := range []*Nodes{a, b, c} {
			r.leave(n)
		}
	})
}

// A principal who is moved is served by the new node alone, and the old one is told.
func TestMove(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		a, b := r.join("a", 100), r.join("b", 100)
		at := r.owner(a, "alice")
		from, to := a, b
		if at.Node == "b" {
			from, to = b, a
		}
		synctest.Wait()
		var told []string
		from.OnMoved(func(who string) { told = append(told, who) })
		to.OnMoved(func(who string) { r.Errorf("the new node is told of %s", who) })
		if err := Move(r.Context(), r.store, "alice", "nobody"); !errors.Is(err, errNoNode) {
			r.Errorf("to a node that is not there: %v", err)
		}
		if err := Move(r.Context(), r.store, "bob", "a"); !errors.Is(err, errNoPlace) {
			r.Errorf("of who has no place: %v", err)
		}
		r.must(Move(r.Context(), r.store, "alice", to.Name()))
		r.must(Move(r.Context(), r.store, "alice", to.Name())) // no second move
		synctest.Wait()
		if !slices.Equal(told, []string{"alice"}) {
			r.Errorf("the old node was told of %q", told)
		}
		for _, n := range []*Nodes{a, b} {
			if got := r.owner(n, "alice"); got.Node != to.Name() || got.Epoch != at.Epoch+1 {
				r.Errorf("%s knows %+v", n.Name(), got)
			}
		}
		if here, err := from.Here(r.Context(), "alice", at.Epoch); here || err != nil {
			r.Errorf("the old node serves: %v", err)
		}
		if here, err := to.Here(r.Context(), "alice", at.Epoch+1); !here || err != nil {
			r.Errorf("the new node does not: %v", err)
		}
		to.OnMoved(func(who string) { told = append(told, who) })
		r.must(Forget(r.Context(), r.store, "alice"))
		synctest.Wait()
		if len(told) != 2 {
			r.Errorf("who is forgotten is not ended: %q", told)
		}
		if here, _ := to.Here(r.Context(), "alice", at.Epoch+1); here {
			r.Error("who is forgotten is served")
		}
		if got := r.owner(a, "alice"); got.Epoch != at.Epoch+3 {
			r.Errorf("the next place is %+v", got)
		}
		places, err := Owners(r.Context(), r.store)
		if err != nil || len(places) != 1 || places[0].Who != "alice" {
			r.Errorf("places are %+v, %v", places, err)
		}
		r.leave(a)
		r.leave(b)
	})
}

// A node that cannot renew its record uses the Store no more after 4 s, before another could be taken for it.
func TestStoreOfANode(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		n := r.join("a", 1)
		s := n.Store()
		time.Sleep(time.Minute)
		r.must(s.Set(r.Context(), "key.a", []byte("1")))
		n.Close() // it renews no more
		time.Sleep(4*time.Second + time.Millisecond)
		if err := s.Set(r.Context(), "key.a", []byte("2")); !errors.Is(err, state.ErrDown) {
			r.Errorf("it writes: %v", err)
		}
		if _, _, err := s.Get(r.Context(), "key.a"); !errors.Is(err, state.ErrDown) {
			r.Errorf("it reads: %v", err)
		}
	})
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"tools-1": true, "A_b": true, "": false, "a.b": false, "ä": false, "a b": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Where says who serves a principal, also when that node is down.
func TestWhere(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r rig) {
		if at, lives, err := Where(r.Context(), r.store, "alice"); at.Node != "" || lives || err != nil {
			r.Errorf("before the first call: %+v, %v, %v", at, lives, err)
		}
		a := r.join("a", 1)
		r.owner(a, "alice")
		if at, lives, err := Where(r.Context(), r.store, "alice"); at.Node != "a" || at.Who != "alice" || !lives || err != nil {
			r.Errorf("while it lives: %+v, %v, %v", at, lives, err)
		}
		r.leave(a)
		if at, lives, err := Where(r.Context(), r.store, "alice"); at.Node != "a" || lives || err != nil {
			r.Errorf("when it is down: %+v, %v, %v", at, lives, err)
		}
	})
}
