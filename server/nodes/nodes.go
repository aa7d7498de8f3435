package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"codehand/server/state"
)

// Options of Join.
type Options struct {
	Store    state.Store // which all nodes share
	Name     string      // of this node, for good; see CheckName
	Version  string      // of codehand
	Capacity int         // principals that it takes at most
	Shared   bool        // all nodes have the same workspaces, on a shared volume; so must all or none
	Volume   string      // a directory that all nodes share, which is checked; "": none is
	Log      *slog.Logger
}

// Nodes is this process as one node of several. It is safe for concurrent use.
type Nodes struct {
	o       Options
	hold    *state.Hold
	stop    chan struct{}
	wake    chan struct{} // holds a token when keepPlaces is to look
	running sync.WaitGroup

	mu       sync.Mutex // covers the rest
	places   map[string]seen
	draining bool
	leaving  bool // this process ends soon
	giving   bool // places are being given back
	moved    func(principal string)
	taken    []func(principal string)
	busy     func(principal string) bool
	claims   map[string]chan struct{} // of the places that are claimed or given back now, closed when that is over
}

// A seen is a place as the Store had it at a revision.
type seen struct {
	Owner
	rev  uint64
	term uint64 // of our record, in which this process claimed the place; 0: it did not, or another node serves it
}

// maxName is the longest name of a node, in bytes.
const maxName = 48

// CheckName returns why a node cannot have a name; nil: it can.
func CheckName(name string) error {
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("must be 1 to %d of A-Z a-z 0-9 _ and -", maxName)
	}
	return nil
}

// A TakenError says that another process is the node of that name.
type TakenError struct {
	Name string
	By   *state.HeldError
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("codehand serve on %s (pid %d, since %s) is the node %s already: give each a cluster.node of "+
		"its own", e.By.Host, e.By.PID, e.By.Since.UTC().Format("2006-01-02 15:04:05 UTC"), e.Name)
}

func (e *TakenError) Unwrap() error { return e.By }

// Join makes this process a node. It waits until the record of a process of that name that died has ended. *TakenError:
// that process lives. *state.HeldError: a process has the Store for itself. *VolumeError.
func Join(ctx context.Context, o Options) (*Nodes, error) {
	if err := CheckName(o.Name); err != nil {
		return nil, fmt.Errorf("cluster.node %w", err)
	}
	n := &Nodes{o: o, stop: make(chan struct{}), wake: make(chan struct{}, 1), places: map[string]seen{},
		claims: map[string]chan struct{}{},
		moved:  func(string) {}, busy: func(string) bool { return false }}
	n.hold = state.NewHold(o.Store, nodeKey(o.Name), n.record)
	if err := n.hold.Take(ctx); err != nil {
		if by, ok := errors.AsType[*state.HeldError](err); ok {
			err = &TakenError{Name: o.Name, By: by}
		}
		return nil, err
	}
	err := state.Unheld(ctx, o.Store) // after our record: a process that takes the Store for itself looks for that
	if err == nil {
		err = n.alike(ctx)
	}
	if err == nil && o.Volume != "" {
		err = sameVolume(ctx, o.Store, o.Volume)
	}
	if err == nil {
		err = n.look(ctx, drainKey(o.Name))
	}
	if err != nil {
		n.hold.GiveBack(context.WithoutCancel(ctx))
		return nil, err
	}
	watching, end := context.WithCancel(context.Background())
	n.running.Go(func() {
		_ = o.Store.Watch(watching, state.Place, func(key string) { // it ends with the Store or with us
			if err := n.look(watching, key); err != nil && watching.Err() == nil {
				o.Log.Warn("cannot look which node serves a principal", "err", err)
			}
		})
	})
	n.running.Go(func() { n.hold.Keep(n.stop, n.lookAgain) })
	if o.Shared {
		n.running.Go(func() { n.keepPlaces(watching) })
	}
	n.running.Go(func() {
		<-n.stop
		end()
	})
	return n, nil
}

// Store is the Store for this process: it works only while others see that this node lives. Closing it ends the record,
// so that others need not wait.
func (n *Nodes) Store() state.Store { return state.Held(n.o.Store, n.hold) }

// Name is that of this node.
func (n *Nodes) Name() string { return n.o.Name }

// Shared says whether all nodes have the same workspaces.
func (n *Nodes) Shared() bool { return n.o.Shared }

// OnMoved sets what is told of a principal that this node served, when another one does.
func (n *Nodes) OnMoved(moved func(principal string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moved = moved
}

// Draining says whether an operator wants this node to take nobody more.
func (n *Nodes) Draining() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draining
}

// leaveTime is how long a node that ends tries to tell that to others.
const leaveTime = time.Second

// Leave says that this process ends soon: it takes nobody more. With shared workspaces its people move to other nodes
// as their calls end.
func (n *Nodes) Leave() {
	n.mu.Lock()
	n.draining, n.leaving = true, true
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	_ = n.hold.Renew(ctx) // others see it now; else with the next renewal
	n.lookAgain()
}

// Close ends what Join began but for the record, which ends with the Store or by itself.
func (n *Nodes) Close() {
	close(n.stop)
	n.running.Wait()
}

// An Owner says which node serves a principal: it is what a place holds.
type Owner struct {
	V     int       `json:"v"`
	Who   string    `json:"who"`  // the principal
	Node  string    `json:"node"` // "": none does
	Epoch uint64    `json:"epoch"`
	Since time.Time `json:"since"`
}

func placeKey(principal string) string { return state.Key(state.Place, state.Hash(principal)) }

// A FullError says that no node takes one more principal.
type FullError struct{ Nodes int }

func (e *FullError) Error() string {
	return fmt.Sprintf("none of the %d nodes has room for one more principal", e.Nodes)
}

// Owner returns the place of a principal. Who has none yet gets one, on a node that lives, has room and does not drain.
// *FullError: there is none. Other errors are those of the Store.
func (n *Nodes) Owner(ctx context.Context, principal string) (Owner, error) {
	at, err := n.mine(ctx, n.cached(placeKey(principal)))
	for err == nil && at.Node == "" {
		at, err = n.read(ctx, placeKey(principal))
		if err == nil {
			at, err = n.mine(ctx, at)
		}
		if err != nil || at.Node != "" {
			break
		}
		node, err := n.choose(ctx, principal)
		if err != nil {
			return Owner{}, err
		}
		if err := put(ctx, n.o.Store, at, Owner{Who: principal, Node: node}); err != nil && !errors.Is(err, errRace) {
			return Owner{}, err
		}
	}
	return at.Owner, err
}

// Here says whether this node serves a principal whom another node takes for ours since epoch. In doubt it asks the
// Store.
func (n *Nodes) Here(ctx context.Context, principal string, epoch uint64) (bool, error) {
	at := n.cached(placeKey(principal))
	if at.Node != n.o.Name || at.Epoch != epoch {
		var err error
		if at, err = n.read(ctx, placeKey(principal)); err != nil {
			return false, err
		}
	}
	at, err := n.mine(ctx, at)
	if err != nil {
		return false, err
	}
	return at.Node == n.o.Name && at.Epoch == epoch, n.hold.Check()
}

// Again reads the place of a principal anew, since a node said that it does not serve it.
func (n *Nodes) Again(ctx context.Context, principal string) error {
	_, err := n.read(ctx, placeKey(principal))
	return err
}

// cached is a place as it was seen last; the zero value: it was not.
func (n *Nodes) cached(key string) seen {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.places[key]
}

// read asks the Store for a place.
func (n *Nodes) read(ctx context.Context, key string) (seen, error) {
	at, err := readPlace(ctx, n.o.Store, key)
	if err != nil {
		return seen{}, err
	}
	n.mu.Lock()
	before := n.places[key]
	if at.rev < before.rev { // another reader was later
		at = before
	}
	if at.Node == n.o.Name && at.Epoch == before.Epoch {
		at.term = before.term
	}
	n.places[key] = at
	moved := n.moved
	n.mu.Unlock()
	if before.Node == n.o.Name && at.Epoch != before.Epoch {
		moved(before.Who)
	}
	return at, nil
}

func readPlace(ctx context.Context, s state.Store, key string) (seen, error) {
	raw, rev, err := s.Get(ctx, key)
	at := seen{rev: rev}
	if err != nil || rev == 0 {
		return at, err
	}
	if err := json.Unmarshal(raw, &at.Owner); err != nil || at.V != 1 {
		return at, fmt.Errorf("place %s: %w", key, state.ErrNewer)
	}
	return at, nil
}

// errRace says that another process wrote a place first.
var errRace = errors.New("another one wrote it first")

// put writes a place over the one that was seen. errRace: it is another one by now.
func put(ctx context.Context, s state.Store, before seen, p Owner) error {
	p.V, p.Epoch, p.Since = 1, before.Epoch+1, time.Now().UTC().Truncate(time.Second)
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	ok, err := s.Swap(ctx, placeKey(p.Who), raw, before.rev)
	if err == nil && !ok {
		err = errRace
	}
	return err
}

// look takes what a key below place says now.
func (n *Nodes) look(ctx context.Context, key string) error {
	if !strings.HasPrefix(key, drains) {
		_, err := n.read(ctx, key)
		return err
	}
	if key != drainKey(n.o.Name) {
		return nil
	}
	drain, err := wished(ctx, n.o.Store, n.o.Name)
	if err != nil {
		return err
	}
	n.mu.Lock()
	drain = drain || n.leaving
	changed := n.draining != drain
	n.draining = drain
	n.mu.Unlock()
	if changed {
		_ = n.hold.Renew(ctx) // others see it now; else with the next renewal
	}
	n.lookAgain()
	return nil
}

// lookAgain lets keepPlaces look.
func (n *Nodes) lookAgain() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}
