package changes

import (
	"context"
	"sync"
	"time"

	"codehand/tools/git"
)

const (
	// Patience is how long the answer to a command waits for a look at a tree.
	Patience = 300 * time.Millisecond
	// wait is how long a command waits for the look at what the one before it changed: who starts at once would take
	// the undo of both away. Most commands come later than that look ends.
	wait     = 10 * time.Second
	maxTrees = 8                // that are remembered
	idle     = 15 * time.Minute // after which an unused tree is forgotten, at the next look at another
)

// Trees remembers work trees between commands. One serves a process, and it is safe for concurrent use. Close frees
// what it holds: one file descriptor for each tree.
type Trees struct {
	home home

	mu     sync.Mutex
	trees  map[git.Place]*tree
	closed bool
	late   sync.WaitGroup // what Go runs; Add under mu
}

// New returns Trees that know no tree yet. dir is the user's home, config where programs keep their configuration
// there; "": the user has none.
func New(dir, config string) *Trees {
	return &Trees{home: home{dir, config}, trees: make(map[git.Place]*tree)}
}

// Close forgets all trees. A Span that goes on finds nothing more.
func (t *Trees) Close() {
	t.mu.Lock()
	all := t.trees
	t.trees, t.closed = nil, true
	t.mu.Unlock()
	t.late.Wait()
	for _, at := range all {
		at.forget()
	}
}

// Go runs f, which ends a Span, in a goroutine for which Close waits. It says whether f runs: not after Close.
func (t *Trees) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.late.Go(f)
	return true
}

// Begin looks at the work tree that holds dir, an absolute directory, before something runs there. nil: there is none.
// It waits for another Span that is ending, until ctx ends or for 10 s. The Span is Blind if nothing can be known of
// the tree. The caller ends the Span.
func (t *Trees) Begin(ctx context.Context, dir string) *Span {
	place, ok := git.Find(dir)
	switch {
	case place.Top == "":
		return nil
	case !ok:
		return &Span{}
	}
	at := t.hold(place)
	if at == nil {
		return &Span{}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s := at.begin(ctx)
	if s.Blind() {
		at.use.by.Add(-1)
	}
	return s
}

// hold returns the tree of a place, with one user more, and forgets others for it; nil: Trees is closed. A tree that
// has users is not forgotten, so there can be more than maxTrees.
func (t *Trees) hold(place git.Place) *tree {
	t.mu.Lock()
	at, old := t.choose(place)
	t.mu.Unlock()
	for _, other := range old { // outside of the lock, since each waits for who looks at that tree
		other.forget()
	}
	return at
}

func (t *Trees) choose(place git.Place) (at *tree, old []*tree) {
	if t.closed {
		return nil, nil
	}
	at = t.trees[place]
	if at == nil {
		at = &tree{mu: make(slot, 1), place: place, home: t.home, spans: make(map[*Span]bool)}
		t.trees[place] = at
	}
	now := time.Now()
	at.use.last = now
	at.use.by.Add(1)
	for {
		var oldest *tree
		for _, other := range t.trees {
			if other.use.by.Load() == 0 && (oldest == nil || other.use.last.Before(oldest.use.last)) {
				oldest = other
			}
		}
		if oldest == nil || len(t.trees) <= maxTrees && now.Sub(oldest.use.last) < idle {
			return at, old
		}
		old = append(old, oldest)
		delete(t.trees, oldest.place)
	}
}
