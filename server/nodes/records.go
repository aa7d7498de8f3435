package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codehand/server/state"
)

// A Node is the record of a node.
type Node struct {
	state.Holder
	Name       string `json:"name"`
	Version    string `json:"version"`
	Capacity   int    `json:"capacity"`
	Principals int    `json:"principals"` // that it serves
	Draining   bool   `json:"draining,omitempty"`
	Shared     bool   `json:"shared,omitempty"` // its workspaces are those of all nodes

	Renewed time.Time `json:"renewed"` // when this record was written, by the clock of the node
}

func nodeKey(name string) string { return state.NodeRecords + "." + name }

// record makes ours.
func (n *Nodes) record(h state.Holder) any {
	n.mu.Lock()
	defer n.mu.Unlock()
	return Node{
		Holder: h, Name: n.o.Name, Version: n.o.Version, Capacity: n.o.Capacity, Principals: n.counts()[n.o.Name],
		Draining: n.draining, Shared: n.o.Shared, Renewed: time.Now(),
	}
}

// counts are the principals of each node, as far as they were seen. The caller has mu.
func (n *Nodes) counts() map[string]int {
	all := map[string]int{}
	for _, at := range n.places {
		if at.Node != "" {
			all[at.Node]++
		}
	}
	return all
}

// Live returns the nodes that live, by name.
func Live(ctx context.Context, s state.Store) ([]Node, error) {
	keys, err := s.Keys(ctx, state.NodeRecords)
	if err != nil {
		return nil, err
	}
	var all []Node
	for _, key := range keys {
		raw, rev, err := s.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		var x Node
		if rev == 0 || json.Unmarshal(raw, &x) != nil || x.V != 1 {
			continue // it ended meanwhile, or a newer one says it otherwise
		}
		all = append(all, x)
	}
	return all, nil
}

// choose picks the node for a new principal: the same one whoever is asked, as long as the same nodes have room.
func (n *Nodes) choose(ctx context.Context, principal string) (string, error) {
	live, err := Live(ctx, n.o.Store)
	if err != nil {
		return "", err
	}
	n.mu.Lock()
	counts := n.counts()
	n.mu.Unlock()
	open := slices.DeleteFunc(slices.Clone(live), func(x Node) bool {
		return x.Draining || counts[x.Name] >= x.Capacity
	})
	if len(open) == 0 {
		return "", &FullError{len(live)}
	}
	return slices.MaxFunc(open, func(a, b Node) int {
		return cmp.Compare(weight(a.Name, principal), weight(b.Name, principal))
	}).Name, nil
}

// weight is that of a node for a principal (rendezvous hashing): a node more or less moves only those who get another
// heaviest one.
func weight(node, principal string) uint64 {
	sum := sha256.Sum256([]byte(node + "\x00" + principal))
	return binary.BigEndian.Uint64(sum[:])
}

// drains begin the keys that say which nodes are to take nobody more.
const drains = state.Place + ".drain."

func drainKey(name string) string { return drains + name }

// A wish of an operator. It is written over, never deleted: NATS does not promise to tell of a delete.
type wish struct {
	V     int  `json:"v"`
	Drain bool `json:"drain"`
}

func wished(ctx context.Context, s state.Store, name string) (bool, error) {
	raw, rev, err := s.Get(ctx, drainKey(name))
	var w wish
	if err == nil && rev != 0 {
		err = json.Unmarshal(raw, &w)
	}
	return w.Drain, err
}

// Drain lets a node take nobody more, or again; it need not live.
func Drain(ctx context.Context, s state.Store, name string, drain bool) error {
	if err := CheckName(name); err != nil {
		return fmt.Errorf("the name of a node %w", err)
	}
	raw, err := json.Marshal(wish{1, drain})
	if err != nil {
		return err
	}
	return s.Set(ctx, drainKey(name), raw)
}

// drainedEvery is between two looks at a node that drains.
const drainedEvery = 250 * time.Millisecond

// Drained waits until a node that drains has given its places back, if it does that and lives, and returns who is still
// served there. That some stay is no error.
func Drained(ctx context.Context, s state.Store, name string) (left []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, drainTime+2*time.Second)
	defer cancel()
	for {
		owners, err := Owners(ctx, s)
		if err != nil {
			return nil, err
		}
		left = nil
		for _, p := range owners {
			if p.Node == name {
				left = append(left, p.Who)
			}
		}
		live, err := Live(ctx, s)
		if err != nil {
			return nil, err
		}
		gives := slices.ContainsFunc(live, func(x Node) bool { return x.Name == name && x.Shared }) &&
			slices.ContainsFunc(live, func(x Node) bool { return x.Name != name && !x.Draining })
		if len(left) == 0 || !gives {
			return left, nil
		}
		select {
		case <-ctx.Done():
			return left, nil
		case <-time.After(drainedEvery):
		}
	}
}

// Owners returns who is served where, by principal; those that no node serves are left out.
func Owners(ctx context.Context, s state.Store) ([]Owner, error) {
	keys, err := s.Keys(ctx, state.Place)
	if err != nil {
		return nil, err
	}
	var all []Owner
	for _, key := range keys {
		if strings.HasPrefix(key, drains) {
			continue
		}
		at, err := readPlace(ctx, s, key)
		if err != nil {
			return nil, err
		}
		if at.Node != "" {
			all = append(all, at.Owner)
		}
	}
	slices.SortFunc(all, func(a, b Owner) int { return cmp.Compare(a.Who, b.Who) })
	return all, nil
}

// Where returns the place of a principal, and whether its node lives. An Owner without a node: none serves it.
func Where(ctx context.Context, s state.Store, principal string) (at Owner, lives bool, err error) {
	place, err := readPlace(ctx, s, placeKey(principal))
	if err != nil || place.Node == "" {
		return Owner{}, false, err
	}
	process, err := processOf(ctx, s, place.Node)
	return place.Owner, process != "", err
}

// The errors of Move and Forget, for people.
var (
	errNoPlace = errors.New("no node serves this principal")
	errNoNode  = errors.New("no node of this name lives")
)

// Move gives a principal to another node, which must live, after its files were taken there. The node that served it
// ends its sessions and commands.
func Move(ctx context.Context, s state.Store, principal, to string) error {
	live, err := Live(ctx, s)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(live, func(x Node) bool { return x.Name == to }) {
		return errNoNode
	}
	return replace(ctx, s, principal, to)
}

// Forget takes its place from a principal: where it calls next, it gets a new one.
func Forget(ctx context.Context, s state.Store, principal string) error {
	return replace(ctx, s, principal, "")
}

func replace(ctx context.Context, s state.Store, principal, to string) error {
	for {
		at, err := readPlace(ctx, s, placeKey(principal))
		switch {
		case err != nil:
			return err
		case at.Node == "":
			return errNoPlace
		case at.Node == to:
			return nil
		}
		if err := put(ctx, s, at, Owner{Who: principal, Node: to}); !errors.Is(err, errRace) {
			return err
		}
	}
}
