package look

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Most is how many entries of directories one command may wait for: about two seconds. What would take more is not
// whole, and a command that it is needed for does not start.
const Most = 1_000_000

// A Looker finds paths below directories for one command after the other, and reads only those directories again that
// have changed. It is safe for concurrent use.
type Looker struct {
	Most int // entries that one look may read; 0: Most

	mu    sync.Mutex
	trees map[string]*kept // by directory and by what is looked for
	turn  int
}

// maxTrees is how many trees are kept. A session has one or two for each of its roots.
const maxTrees = 32

// A kept is what was found below one directory.
type kept struct {
	used int // the Looker's turn; covered by its lock

	mu  sync.Mutex
	top *node
}

// A node is one directory of a tree.
type node struct {
	at    Stamp
	fixed bool             // what changes it also changes at
	below map[string]*node // that were entered
	hits  []Hit
}

// A Stamp tells a directory from another one, and from itself after something in it was made, renamed or removed; and a
// file from itself after it was changed. Who owns it cannot set it.
type Stamp struct {
	dev, ino  uint64
	sec, nsec int64
}

// Settled says whether the next change gives another stamp.
func (s Stamp) Settled() bool { return time.Since(time.Unix(s.sec, s.nsec)) > settled }

// settled is how old a stamp must be for the next change to give another one, on any file system.
const settled = 2 * time.Second

// A Hit is something that was looked for.
type Hit struct {
	Path string
	Of   []int // what a Judge said about it
}

// A Judge says what an entry of a directory is, by numbers of its own (none: nothing that is looked for), and whether
// what is in it counts, too.
type Judge func(path string, d fs.DirEntry, depth int) (of []int, enter bool)

// A Search is one look at one tree.
type Search struct {
	Judge Judge
	Shut  []int // what a directory of this user's is that this user may not look into at the moment
	Left  *int  // entries that may still be read
	// Open opens a directory of this user's that this user may not look into, and says whether it did; nil: it is Shut
	Open func(dir string) bool
	hits []Hit
}

// Limit is how many entries one look may read.
func (l *Looker) Limit() int { return cmp.Or(l.Most, Most) }

// Find returns what the Judge finds below dir. kind names the Judge: one of the same kind says the same of the same
// entry. whole is false if there is more than left allows; then what was found before still counts.
func (l *Looker) Find(dir, kind string, s Search) (hits []Hit, whole bool) {
	l.mu.Lock()
	l.turn++
	key := dir + "\x00" + kind
	t := l.trees[key]
	if t == nil {
		if l.trees == nil {
			l.trees = map[string]*kept{}
		}
		if len(l.trees) >= maxTrees {
			oldest := key
			for k, other := range l.trees {
				if oldest == key || other.used < l.trees[oldest].used {
					oldest = k
				}
			}
			delete(l.trees, oldest)
		}
		t = &kept{}
		l.trees[key] = t
	}
	t.used = l.turn
	l.mu.Unlock()

	t.mu.Lock()
	defer t.mu.Unlock()
	top, whole := s.look(dir, t.top, 0)
	t.top = top
	return s.hits, whole
}

// look looks at a directory, of which old is what is known.
func (s *Search) look(dir string, old *node, depth int) (n *node, whole bool) {
	if *s.Left--; *s.Left < 0 {
		s.recall(old)
		return old, false
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return nil, true // it is gone, or its directory is shut
	}
	at, known := StampOf(info)
	if old != nil && known && old.fixed && old.at == at {
		s.hits = append(s.hits, old.hits...)
		return old, s.descend(dir, old, old.below, depth)
	}
	n = &node{at: at, fixed: known && at.Settled()}
	var was map[string]*node
	if old != nil && known && old.at.dev == at.dev && old.at.ino == at.ino {
		was = old.below
	}
	names, err := s.read(dir, n, depth)
	if errors.Is(err, fs.ErrPermission) && s.Open != nil && s.Open(dir) {
		n.hits = nil
		names, err = s.read(dir, n, depth)
	}
	switch {
	case errors.Is(err, errTooMany):
		s.recall(old)
		return old, false
	case err != nil && len(s.Shut) > 0 && Mine(info):
		n.hits = append(n.hits, Hit{dir, s.Shut})
	}
	s.hits = append(s.hits, n.hits...)
	if len(names) == 0 {
		return n, true
	}
	n.below = make(map[string]*node, len(names))
	for _, name := range names {
		n.below[name] = was[name]
	}
	return n, s.descend(dir, n, n.below, depth)
}

// descend looks at the directories in one.
func (s *Search) descend(dir string, n *node, below map[string]*node, depth int) (whole bool) {
	whole = true
	for name, old := range below {
		now, ok := s.look(filepath.Join(dir, name), old, depth+1)
		if below[name] = now; !ok {
			n.fixed, whole = false, false // else what was not entered would be taken for known
		}
	}
	return whole
}

// recall gives what was known of a directory that is not looked at again.
func (s *Search) recall(old *node) {
	if old == nil {
		return
	}
	s.hits = append(s.hits, old.hits...)
	for _, n := range old.below {
		s.recall(n)
	}
}

var errTooMany = errors.New("too many entries")

// read judges the entries of a directory, and returns those to enter.
func (s *Search) read(dir string, n *node, depth int) (enter []string, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	for {
		entries, err := f.ReadDir(1000)
		if *s.Left -= len(entries); *s.Left < 0 {
			return nil, errTooMany
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			of, in := s.Judge(path, e, depth)
			if len(of) > 0 {
				n.hits = append(n.hits, Hit{path, of})
			}
			if in && e.IsDir() {
				enter = append(enter, e.Name())
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return enter, shut(dir)
		case err != nil:
			return enter, err
		}
	}
}
