package filestate_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A lossyDisk is a file system in memory whose power goes out: what was not synced then is gone, or a part of it, as disks
// and file systems may choose. The bytes of a file are kept by its fsync; a name is kept by the fsync of its directory,
// and by nothing else.
//
// The kernel holds no writes back, since the disk does not offer that (go-fuse v2.12.1 asks for no writeback cache), and
// asks again for every name.
type lossyDisk struct {
	fuse.RawFileSystem // answers ENOSYS to calls that no test makes

	mu     sync.Mutex
	random *rand.Rand
	nodes  map[uint64]*lossyNode
	last   uint64     // id of the newest node
	count  int        // operations that change something, since arm
	at     int        // the power goes out before this one; 0: it stays
	choice int        // how much of what was not synced is left
	lost   *lossyDisk // what is found when the power is back; nil: it is on
}

// How much is left of what was not synced.
const (
	leavesNothing = iota
	leavesPrefix  // names: what came first, as where a file system has a log; bytes: some
	leavesAny     // names: any of them
	choices
)

// A lossyNode is a file or a directory.
type lossyNode struct {
	attr, safe fuse.Attr // safe is what the last sync kept

	data, kept []byte

	entries, names map[string]uint64         // of a directory; names are what the last sync kept
	waiting        []func(map[string]uint64) // what happened to them since
}

func newLossyDisk(random *rand.Rand) *lossyDisk {
	d := &lossyDisk{RawFileSystem: fuse.NewDefaultRawFileSystem(), random: random, nodes: map[uint64]*lossyNode{}}
	d.add(syscall.S_IFDIR|0o755, fuse.Owner{})
	return d
}

func (d *lossyDisk) add(mode uint32, owner fuse.Owner) (uint64, *lossyNode) {
	d.last++
	now := time.Now()
	n := &lossyNode{attr: fuse.Attr{Ino: d.last, Mode: mode, Nlink: 1, Owner: owner, Blksize: 4096}}
	n.attr.SetTimes(&now, &now, &now)
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.entries, n.names = map[string]uint64{}, map[string]uint64{}
	}
	n.safe = n.attr
	d.nodes[d.last] = n
	return d.last, n
}

// arm has the power go out before the n-th operation from now on that changes something.
func (d *lossyDisk) arm(n, choice int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count, d.at, d.choice = 0, n, choice
}

// cut is the end of the power, if it is still on, and returns what is found afterwards.
func (d *lossyDisk) cut() *lossyDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lose()
	return d.lost
}

// sync is sync(8): all that there is survives.
func (d *lossyDisk) sync() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.nodes {
		n.kept, n.names, n.waiting, n.safe = slices.Clone(n.data), maps.Clone(n.entries), nil, n.attr
	}
}

// off says whether the power is out, and how many operations there were.
func (d *lossyDisk) off() (bool, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost != nil, d.count
}

func (d *lossyDisk) lose() {
	if d.lost != nil {
		return
	}
	left := &lossyDisk{RawFileSystem: d.RawFileSystem, random: d.random, nodes: map[uint64]*lossyNode{}, last: d.last}
	ids := []uint64{fuse.FUSE_ROOT_ID}
	for i := 0; i < len(ids); i++ { // what has no name is gone
		n := d.nodes[ids[i]]
		c := &lossyNode{attr: n.safe, safe: n.safe}
		if n.entries != nil {
			c.entries = d.leftNames(n)
			c.names = maps.Clone(c.entries)
			ids = append(ids, slices.Sorted(maps.Values(c.entries))...) // in an order that a seed repeats
		} else {
			c.kept = d.leftBytes(n)
			c.data = slices.Clone(c.kept)
		}
		left.nodes[ids[i]] = c
	}
	d.lost = left
}

func (d *lossyDisk) leftNames(n *lossyNode) map[string]uint64 {
	names := maps.Clone(n.names)
	upTo := len(n.waiting)
	switch d.choice {
	case leavesNothing:
		upTo = 0
	case leavesPrefix:
		upTo = d.random.IntN(len(n.waiting) + 1)
	}
	for _, happened := range n.waiting[:upTo] {
		if d.choice != leavesAny || d.random.IntN(2) == 0 {
			happened(names)
		}
	}
	return names
}

func (d *lossyDisk) leftBytes(n *lossyNode) []byte {
	if slices.Equal(n.data, n.kept) || d.choice == leavesNothing {
		return n.kept
	}
	switch d.random.IntN(4) {
	case 0:
		return n.kept
	case 1:
		return make([]byte, len(n.data)) // the size was written, and the bytes were not
	case 2:
		return slices.Clone(n.data[:d.random.IntN(len(n.data)+1)])
	default:
		return slices.Clone(n.data)
	}
}

// change begins an operation that changes something.
func (d *lossyDisk) change(id uint64) (*lossyNode, fuse.Status) {
	if d.count++; d.count == d.at {
		d.lose()
	}
	return d.look(id)
}

// look begins one that does not.
func (d *lossyDisk) look(id uint64) (*lossyNode, fuse.Status) {
	n := d.nodes[id]
	switch {
	case d.lost != nil:
		return nil, fuse.EIO
	case n == nil:
		return nil, fuse.ENOENT
	}
	return n, fuse.OK
}

// entry makes a change of a directory's names, which is not synced.
func (n *lossyNode) entry(do func(map[string]uint64)) {
	do(n.entries)
	n.waiting = append(n.waiting, do)
	now := time.Now()
	n.attr.SetTimes(nil, &now, &now)
}
