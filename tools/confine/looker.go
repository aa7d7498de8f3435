package confine

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// maxLooked is how many entries of directories one command may wait for: about two seconds. What would take more is not
// whole, and a command that it is needed for does not start.
const maxLooked = 1_000_000

// A looker finds paths below directories for one command after the other, and reads only those directories again that
// have changed. It is safe for concurrent use.
type looker struct {
	most int // entries that one look may read; 0: maxLooked

	mu    sync.Mutex
	trees map[string]*kept // by directory and by what is looked for
	turn  int
}

// maxTrees is how many trees are kept. A session has one or two for each of its roots.
const maxTrees = 32

// A kept is what was found below one directory.
type kept struct {
	used int // the looker's turn; covered by its lock

	mu  sync.Mutex
	top *node
}

// A node is one directory of a tree.
type node struct {
	at    stamp
	fixed bool             // what changes it also changes at
	below map[string]*node // that were entered
	hits  []hit
}

// A stamp tells a directory from another one, and from itself after something in it was made, renamed or removed. Who
// owns it cannot set it.
type stamp struct {
	dev, ino  uint64
	sec, nsec int64
}

// settled is how old a stamp must be for the next change to give another one, on any file system.
const settled = 2 * time.Second

// A hit is something that was looked for.
type hit struct {
	path string
	of   []int // what a judge said about it
}

// A judge says what an entry of a directory is, by numbers of its own (none: nothing that is looked for), and whether
// what is in it counts, too.
type judge func(path string, d fs.DirEntry, depth int) (of []int, enter bool)

// A search is one look at one tree.
type search struct {
	judge judge
	shut  []int // what a directory of this user's is that this user may not look into at the moment
	left  *int  // entries that may still be read
	hits  []hit
}

func (l *looker) limit() int { return cmp.Or(l.most, maxLooked) }

// find returns what the judge finds below dir. kind names the judge: one of the same kind says the same of the same
// entry. whole is false if there is more than left allows; then what was found before still counts.
func (l *looker) find(dir, kind string, s search) (hits []hit, whole bool) {
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
func (s *search) look(dir string, old *node, depth int) (n *node, whole bool) {
	if *s.left--; *s.left < 0 {
		s.recall(old)
		return old, false
	}
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return nil, true // it is gone, or its directory is shut
	}
	at, known := stampOf(info)
	if old != nil && known && old.fixed && old.at == at {
		s.hits = append(s.hits, old.hits...)
		return old, s.descend(dir, old, old.below, depth)
	}
	n = &node{at: at, fixed: known && time.Since(time.Unix(at.sec, at.nsec)) > settled}
	var was map[string]*node
	if old != nil && known && old.at.dev == at.dev && old.at.ino == at.ino {
		was = old.below
	}
	names, err := s.read(dir, n, depth)
	switch {
	case errors.Is(err, errTooMany):
		s.recall(old)
		return old, false
	case err != nil && len(s.shut) > 0 && mine(info):
		n.hits = append(n.hits, hit{dir, s.shut})
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
func (s *search) descend(dir string, n *node, below map[string]*node, depth int) (whole bool) {
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
func (s *search) recall(old *node) {
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
func (s *search) read(dir string, n *node, depth int) (enter []string, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	for {
		entries, err := f.ReadDir(1000)
		if *s.left -= len(entries); *s.left < 0 {
			return nil, errTooMany
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			of, in := s.judge(path, e, depth)
			if len(of) > 0 {
				n.hits = append(n.hits, hit{path, of})
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

// tops sorts paths and leaves out those below another one.
func tops(paths []string) []string {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	all := make(map[string]bool, len(paths))
	for _, p := range paths {
		all[p] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		for up := filepath.Dir(p); ; up = filepath.Dir(up) {
			if all[up] && up != p {
				return true
			}
			if up == filepath.Dir(up) {
				return false
			}
		}
	})
}
