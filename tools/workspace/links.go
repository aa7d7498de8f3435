package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	// linksKept is how long what a walk found about hard links is believed. The links of one file are checked besides
	// (linked.changed); this is for directories on the way, whose renaming leaves no trace in the file.
	linksKept = 5 * time.Second
	// maxLinkDepth is how deep a walk goes; one handle is open for each level.
	maxLinkDepth = 200
	// readAtOnce is how many entries of a directory are in memory.
	readAtOnce = 512
)

// A fileID tells files apart.
type fileID struct{ dev, ino uint64 }

// A linked is what a file says about its names.
type linked struct {
	id      fileID
	links   uint64 // how many names it has
	changed int64  // its inode, nanoseconds since 1970, since a new link changes that; 0: the system does not say
}

// linkIndex finds the other names of files with more than one. It is shared by all copies of a Space and safe for
// concurrent use; a call that needs a walk in progress waits for it.
type linkIndex struct {
	now func() time.Time

	mu    sync.Mutex // covers what follows
	at    time.Time  // of the last walk
	whole bool       // it saw everything
	found map[fileID]*linkEntry
}

// A linkEntry is a file with several names, as the walk saw it.
type linkEntry struct {
	linked
	names []string // canonical, in no order
}

// Names returns the other names, inside the roots, of the file at path, canonical and sorted: its hard links. Names of
// directories on the way are those of the disk, so no link is in them. whole is false if not everything in the roots
// could be looked at and a name may be missing; a caller that decides by names then assumes the worst one. What does
// not exist, or cannot be reached, has no other names. Files with one name cost one look at them, others a walk of the
// roots (at most maxLinkEntries entries), which is good for all files for some seconds.
func (s *Space) Names(path string) (names []string, whole bool) {
	p, err := openBy(s, path, Read, nil)
	if err != nil {
		return nil, true
	}
	defer p.Dir.Close()
	return s.namesAt(p)
}

// namesAt is Names of what is at a Place.
func (s *Space) namesAt(p Place) (names []string, whole bool) {
	info, err := p.Dir.Lstat(p.Name)
	if err != nil {
		return nil, true
	}
	return s.NamesOf(p, info)
}

// NamesOf is Names of what info describes, which stood at a Place or was opened there.
func (s *Space) NamesOf(p Place, info fs.FileInfo) (names []string, whole bool) {
	if !info.Mode().IsRegular() {
		return nil, true
	}
	file, ok := identify(p.Dir, p.Name, info)
	if !ok {
		return nil, false
	}
	if file.links < 2 {
		return nil, true
	}
	all, whole := s.links.names(file, s.walkLinks)
	others := make([]string, 0, len(all))
	for _, name := range all {
		if name != p.Path {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others, whole
}

// names returns the names that a walk knows of file, and whether that is all of them. It walks again if the last walk
// is old or saw the file otherwise.
func (x *linkIndex) names(file linked, walk func() (map[fileID]*linkEntry, bool)) (names []string, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.found[file.id]
	if x.stale(e) || e != nil && e.linked != file {
		e = x.again(file, walk)
	}
	return x.known(e)
}

// stale says whether the last walk is too old, or came to everything but to what e should be. One that did not come
// everywhere is not made again for that: the next would not, either, and a tree so large has thousands of such files.
func (x *linkIndex) stale(e *linkEntry) bool {
	return x.found == nil || x.now().Sub(x.at) > linksKept || e == nil && x.whole
}

// again walks. A file that was not found is remembered as such.
func (x *linkIndex) again(file linked, walk func() (map[fileID]*linkEntry, bool)) *linkEntry {
	x.found, x.whole = walk()
	x.at = x.now()
	if x.found[file.id] == nil {
		x.found[file.id] = &linkEntry{linked: file}
	}
	return x.found[file.id]
}

// known is what an entry says; nil: the walk did not come to the file, or all its names are outside the roots.
func (x *linkIndex) known(e *linkEntry) (names []string, whole bool) {
	if e == nil {
		return nil, x.whole
	}
	return e.names, x.whole || uint64(len(e.names)) >= e.links
}

// walkLinks looks at every file in the roots.
func (s *Space) walkLinks() (found map[fileID]*linkEntry, whole bool) {
	w := linkWalk{found: map[fileID]*linkEntry{}, left: maxLinkEntries, whole: true}
	for _, root := range s.roots {
		a, rest, ok := s.areas.find(root)
		if !ok || len(rest) > 0 {
			continue // cannot be: a root is an area
		}
		if up, _, inside := s.areas.find(filepath.Dir(root)); inside && !up.readOnly && !up.file {
			continue // it lies in another root
		}
		dir, err := a.open()
		if err != nil {
			w.whole = false
			continue
		}
		w.directory(dir, a.path, 0)
	}
	return w.found, w.whole
}

// A linkWalk is one walk. It follows no link, so it is never twice in one place.
type linkWalk struct {
	found map[fileID]*linkEntry
	left  int // entries that it may still look at
	whole bool
}

// directory walks through dir, which stands at path, and closes it.
func (w *linkWalk) directory(dir *os.Root, path string, depth int) {
	defer dir.Close()
	below, err := w.files(dir, path)
	if err != nil || len(below) > 0 && depth == maxLinkDepth {
		w.whole = false
		return
	}
	for _, name := range below {
		sub, err := openDir(dir, name)
		switch {
		case err == nil:
			w.directory(sub, filepath.Join(path, name), depth+1)
		case !gone(err):
			w.whole = false
		}
	}
}

// errTooMany ends a walk.
var errTooMany = errors.New("too many entries")

// files looks at the files of dir and returns its directories.
func (w *linkWalk) files(dir *os.Root, path string) (below []string, err error) {
	list, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for {
		entries, err := list.ReadDir(readAtOnce)
		for _, e := range entries {
			if w.left--; w.left < 0 {
				return nil, errTooMany
			}
			switch e.Type() {
			case fs.ModeDir:
				below = append(below, e.Name())
			case 0:
				w.file(dir, path, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			return below, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (w *linkWalk) file(dir *os.Root, path, name string) {
	info, err := dir.Lstat(name)
	if err != nil {
		w.whole = w.whole && gone(err)
		return
	}
	file, ok := identify(dir, name, info)
	switch {
	case !ok:
		w.whole = false
	case file.links > 1:
		e := w.found[file.id]
		if e == nil {
			e = &linkEntry{linked: file}
			w.found[file.id] = e
		}
		e.names = append(e.names, filepath.Join(path, name))
	}
}
