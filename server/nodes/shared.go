package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"codehand/server/state"
)

// With shared workspaces a principal moves when its node dies. Three things keep two nodes from changing its files at
// once. A node takes over only when the record of the other one has ended. A node changes files only within the term
// of its record in which it claimed the place (Holds): a term ends before the record does. And a claim writes the
// place, so that it fails if another node was faster; a take-over that comes late fails the same way.

// Times of a take-over.
const (
	lookEvery = 250 * time.Millisecond // for the record of a node that does not answer

	// sureAfter is how long the record of a node must be seen to be gone: just after a change of its leader, a server
	// of NATS may answer with what was before.
	sureAfter = time.Second

	// takeOverTime is how long a request waits for another node to serve its principal: as long as a record lives, and
	// some.
	takeOverTime = 8 * time.Second

	// quietTime is how long a node takes nobody over after its own record had ended: if the Store was away, the records
	// of nodes that live have ended as well.
	quietTime = 6 * time.Second

	// drainTime is how long calls may go on at a node that gives a place back.
	drainTime = 30 * time.Second
	idleEvery = 100 * time.Millisecond
)

// ErrStays says that a principal stays where it is, although its node does not answer.
var ErrStays = errors.New("no other node serves this principal")

// errKinds says that nodes have different settings.
var errKinds = errors.New("another node has another cluster.workspaces: all have local, or all have shared")

// alike looks whether the nodes that live have the same workspaces, or each its own, as this one says.
func (n *Nodes) alike(ctx context.Context) error {
	live, err := Live(ctx, n.o.Store)
	if err != nil {
		return err
	}
	for _, x := range live {
		if x.Shared != n.o.Shared {
			return fmt.Errorf("node %s: %w", x.Name, errKinds)
		}
	}
	return nil
}

// OnTaken adds what is told of a principal before this node begins to serve it, which another node or process may have
// served before. It is told again when the principal comes back.
func (n *Nodes) OnTaken(taken func(principal string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, taken)
}

// OnDrain sets what says whether calls of a principal are being served here.
func (n *Nodes) OnDrain(busy func(principal string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = busy
}

// Holds returns what says whether this node may still change the files of a principal that it serves now: nil, or why
// not. That is said from memory. A nil result: it always may.
func (n *Nodes) Holds(principal string) func() error {
	if n == nil || !n.o.Shared {
		return nil
	}
	key := placeKey(principal)
	epoch := n.cached(key).Epoch
	return func() error {
		term, _, err := n.hold.Term()
		if err != nil {
			return err
		}
		if at := n.cached(key); at.Node != n.o.Name || at.Epoch != epoch || at.term != term {
			return fmt.Errorf("%w: another node may serve this principal", state.ErrDown)
		}
		return nil
	}
}

// mine claims a place of this node that it did not claim in this term, and returns the place as it is then. Where the
// Store does not answer, it is as it was: this node may go on to read.
func (n *Nodes) mine(ctx context.Context, at seen) (seen, error) {
	if !n.o.Shared {
		return at, nil
	}
	for at.Node == n.o.Name {
		key := placeKey(at.Who)
		if n.claimed(key) {
			return at, nil
		}
		unlock, err := n.lock(ctx, key)
		if err != nil {
			return at, err
		}
		now := n.cached(key) // as whoever had the lock before left it
		if now.Node != n.o.Name {
			unlock()
			return n.read(ctx, key)
		}
		err = n.claim(ctx, now)
		unlock()
		if at = n.cached(key); !errors.Is(err, errRace) {
			return at, notDown(err)
		}
		if at, err = n.read(ctx, key); err != nil {
			return at, err
		}
	}
	return at, nil
}

// claimed says whether a place was claimed in this term, and is not being given back.
func (n *Nodes) claimed(key string) bool {
	term, _, err := n.hold.Term()
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.places[key]
	return err == nil && n.claims[key] == nil && at.Node == n.o.Name && at.term == term
}

// notDown is err, unless it says that the Store does not answer.
func notDown(err error) error {
	if errors.Is(err, state.ErrDown) || errors.Is(err, state.ErrUnsure) {
		return nil
	}
	return err
}

// lock is held by one caller at a time for each place.
func (n *Nodes) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		n.mu.Lock()
		other := n.claims[key]
		if other == nil {
			own := make(chan struct{})
			n.claims[key] = own
			n.mu.Unlock()
			return func() {
				n.mu.Lock()
				delete(n.claims, key)
				n.mu.Unlock()
				close(own)
			}, nil
		}
		n.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// claim writes a place of this node again, unless it did so in this term. errRace: it is another one by now.
func (n *Nodes) claim(ctx context.Context, at seen) error {
	term, _, err := n.hold.Term()
	if err != nil || at.term == term {
		return err
	}
	raw, err := json.Marshal(at.Owner)
	if err != nil {
		return err
	}
	key := placeKey(at.Who)
	ok, err := n.o.Store.Swap(ctx, key, raw, at.rev)
	if err == nil && !ok {
		err = errRace
	}
	if err != nil {
		return err
	}
	now, err := n.read(ctx, key)
	if err != nil {
		return err
	}
	if now.Node != n.o.Name || now.Epoch != at.Epoch {
		return errRace
	}
	n.mu.Lock()
	taken := n.taken
	n.mu.Unlock()
	if at.term == 0 {
		for _, tell := range taken {
			tell(at.Who)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now = n.places[key]; now.Node != n.o.Name || now.Epoch != at.Epoch {
		return errRace
	}
	now.term = term
	n.places[key] = now
	return nil
}

// keepPlaces claims all places of this node anew when a new term of its record began, so that calls that run may go on.
// It also gives them back when this node drains.
func (n *Nodes) keepPlaces(ctx context.Context) {
	known := uint64(0) // the term in which all places were claimed that this process has
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.wake:
		}
		if term, _, err := n.hold.Term(); err == nil && term != known && n.claimAll(ctx, term) {
			known = term // else the next renewal tries again
		}
		n.mu.Lock()
		give := n.draining && !n.giving
		n.giving = n.giving || give
		n.mu.Unlock()
		if give {
			n.running.Go(func() { n.giveBack(ctx) })
		}
	}
}

func (n *Nodes) claimAll(ctx context.Context, term uint64) (done bool) {
	done = true
	for _, at := range n.own() {
		if at.term == 0 || at.term == term {
			continue // it is claimed at the next request
		}
		if at, err := n.mine(ctx, at); err != nil || at.Node == n.o.Name && at.term != term {
			done = false
		}
	}
	return done
}

// own are the places of this node, as far as they were seen.
func (n *Nodes) own() (all []seen) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, at := range n.places {
		if at.Node == n.o.Name {
			all = append(all, at)
		}
	}
	return all
}

// Successor waits until the node that has a place and did not answer is dead, or has a new process, and returns who
// serves the principal then. If it is dead, this node does, if it may take one more. A node that did not even get the
// request (sent false) may be asked again if it lives. ErrStays: the node lives, or its workspaces are nowhere else.
func (n *Nodes) Successor(ctx context.Context, lost Owner, sent bool) (Owner, error) {
	if !n.o.Shared {
		return Owner{}, ErrStays
	}
	ctx, cancel := context.WithTimeoutCause(ctx, takeOverTime, ErrStays)
	defer cancel()
	var process string // that had the record of the node at the last look
	var gone time.Time // since when there is none
	for again := false; ctx.Err() == nil; again = true {
		at, err := n.read(ctx, placeKey(lost.Who))
		if err != nil {
			return Owner{}, stays(ctx, err)
		}
		if at.Node != lost.Node || at.Epoch != lost.Epoch {
			owner, err := n.Owner(ctx, lost.Who)
			return owner, stays(ctx, err)
		}
		now, err := processOf(ctx, n.o.Store, lost.Node)
		switch {
		case err != nil:
			return Owner{}, stays(ctx, err)
		case now != "" && again && (!sent || process != "" && now != process):
			return at.Owner, nil
		case now != "":
			process, gone = now, time.Time{}
		case gone.IsZero():
			gone = time.Now()
		case time.Since(gone) >= sureAfter && n.quiet():
			err := n.takeOver(ctx, at)
			if err == nil || errors.Is(err, errRace) {
				continue
			}
			return Owner{}, stays(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	return Owner{}, context.Cause(ctx)
}

// stays is err, or why its context ended.
func stays(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// quiet says whether the record of this node did not end lately.
func (n *Nodes) quiet() bool {
	term, since, err := n.hold.Term()
	return err == nil && (term == 1 || time.Since(since) >= quietTime)
}

// processOf names the process that keeps the record of a node; "": none does.
func processOf(ctx context.Context, s state.Store, node string) (string, error) {
	raw, rev, err := s.Get(ctx, nodeKey(node))
	if err != nil || rev == 0 {
		return "", err
	}
	var x Node
	_ = json.Unmarshal(raw, &x) // a newer one says it otherwise
	return cmp.Or(x.ID, "?"), nil
}

// takeOver gives the place of a node that is dead to this one, or if it takes nobody more, to another one.
func (n *Nodes) takeOver(ctx context.Context, at seen) error {
	n.mu.Lock()
	to, full := n.o.Name, n.draining || n.counts()[n.o.Name] >= n.o.Capacity
	n.mu.Unlock()
	if full {
		var err error
		if to, err = n.choose(ctx, at.Who); err != nil {
			return err
		}
	}
	err := put(ctx, n.o.Store, at, Owner{Who: at.Who, Node: to})
	if err == nil {
		n.o.Log.Warn("took over a principal, because its node is dead", "principal", at.Who, "from", at.Node, "to", to)
	}
	return err
}

// giveBack gives up all places of this node, as their calls end, while it drains and another node takes somebody.
func (n *Nodes) giveBack(ctx context.Context) {
	var giving sync.WaitGroup
	for _, at := range n.own() {
		giving.Go(func() {
			full := new(FullError)
			if err := n.giveOne(ctx, at); err != nil && !errors.As(err, &full) && ctx.Err() == nil {
				n.o.Log.Warn("a place is not given back", "principal", at.Who, "err", err)
			}
		})
	}
	giving.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.giving = false
}

// giveOne gives up a place when no call of its principal is being served, or after drainTime.
func (n *Nodes) giveOne(ctx context.Context, at seen) error {
	if _, err := n.choose(ctx, at.Who); err != nil {
		return err // better here than nowhere
	}
	until := time.Now().Add(drainTime)
	tick := time.NewTicker(idleEvery)
	defer tick.Stop()
	for {
		n.mu.Lock()
		busy, drains := n.busy, n.draining
		n.mu.Unlock()
		late := time.Now().After(until)
		switch {
		case !drains:
			return nil
		case late || !busy(at.Who):
			// Requests wait meanwhile; those that came just before are being served at the second look.
			if given, err := n.giveIf(ctx, at, func() bool {
				<-tick.C
				return late || !busy(at.Who)
			}); given || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil // its record ends soon
		case <-tick.C:
		}
	}
}

func (n *Nodes) giveIf(ctx context.Context, at seen, idle func() bool) (given bool, err error) {
	key := placeKey(at.Who)
	unlock, err := n.lock(ctx, key)
	if err != nil {
		return false, err
	}
	defer unlock()
	if !idle() {
		return false, nil
	}
	for {
		now := n.cached(key)
		if now.Node != n.o.Name || now.Epoch != at.Epoch {
			return true, nil
		}
		err := put(ctx, n.o.Store, now, Owner{Who: at.Who})
		if err != nil && !errors.Is(err, errRace) {
			return false, err
		}
		if _, err := n.read(ctx, key); err != nil { // and ends what is here of it
			return false, err
		}
	}
}
