package workspace

import (
	"path/filepath"
	"slices"
)

// A Narrowing is the part of a Space's roots that a client wants to use. It narrows and never widens, and does not
// change.
type Narrowing struct {
	areas  areas
	roots  []string   // canonical, in the order in which they were named; none: nothing of the Space is wanted
	links  *linkIndex // of these roots: an index of fewer must not answer for all
	wanted []string   // what was named, for the words of a refusal
}

// Narrowing makes one of the directories named by dirs, absolute paths or file URLs, as far as they lie in the roots or
// hold some of them: it never adds anything. unused are those of dirs that do neither, and what is no path; if all are,
// no root remains. A file is not used either: what is wanted of a Space are directories. nil: nothing is narrowed,
// since dirs is empty or names all roots. dirs need not exist; links inside the roots are resolved now, and what is a
// link later leads nowhere. What lies neither above nor in a root by its spelling is not looked at on the disk: Real is
// for that.
func (s *Space) Narrowing(dirs []string) (n *Narrowing, unused []string) {
	if len(dirs) == 0 {
		return nil, nil
	}
	n = &Narrowing{links: &linkIndex{now: s.links.now}}
	for _, dir := range dirs {
		path, ok := namedPath(dir)
		file := ok && s.isFile(path)
		if file {
			n.wanted = append(n.wanted, "no directory: "+path)
		} else {
			n.wanted = append(n.wanted, path)
		}
		if !ok || file || !n.take(s, path) {
			unused = append(unused, dir)
		}
	}
	whole := func(root string) bool { return slices.Contains(n.roots, root) }
	if !slices.ContainsFunc(s.roots, func(root string) bool { return !whole(root) }) {
		return nil, unused
	}
	return n, unused
}

// Real is the canonical path of a directory named by an absolute path or a file URL, as far as it exists; what is no
// path comes back as it is. It looks at the disk wherever dir leads, so it takes as long as the slowest mount on the
// way.
func Real(dir string) string {
	path, ok := namedPath(dir)
	if !ok {
		return dir
	}
	return realAsFarAsItGoes(path)
}

// namedPath is the clean path that a directory is named by; !ok: dir is none, and comes back as it is.
func namedPath(dir string) (path string, ok bool) {
	path, err := decodeURL(dir, onWindows)
	if err != nil || !filepath.IsAbs(path) || checkText(path, onWindows) != nil {
		return dir, false
	}
	return filepath.Clean(path), true
}

// take adds what dir (clean) and the roots have in common; false: nothing.
func (n *Narrowing) take(s *Space, dir string) bool {
	if s.inRoot(dir) {
		real, inside := s.Resolve(dir)
		if !inside {
			return false
		}
		dir = real
	}
	taken := false
	if a, rest, in := s.areas.find(dir); in && !a.readOnly && !a.file {
		taken = true
		n.add(a, rest)
	}
	for _, root := range s.roots {
		if a, _, ok := s.areas.find(root); ok && s.areas.below(a, dir) {
			taken = true
			n.add(a, nil)
		}
	}
	return taken
}

// inRoot says by its spelling whether path is or lies in a root.
func (s *Space) inRoot(path string) bool {
	a, _, ok := s.areas.find(path)
	return ok && !a.readOnly && !a.file
}

// isFile says whether path leads to something in a root that is no directory.
func (s *Space) isFile(path string) bool {
	if !s.inRoot(path) {
		return false
	}
	info, err := s.look(path)
	return err == nil && !info.IsDir()
}

// below says whether dir is or holds a, under any spelling of a that find would go by.
func (as areas) below(a *area, dir string) bool {
	for spelled, of := range as {
		if of == a && rootIn(spelled, dir) && (spelled == key(a.path) || !as.covers(filepath.Dir(spelled))) {
			return true
		}
	}
	return false
}

// rootIn says whether root is dir or lies in it, by whole components.
func rootIn(root, dir string) bool {
	for at := root; ; at = filepath.Dir(at) {
		if key(at) == key(dir) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// add takes the directory rest below the root a, under all spellings of the root.
func (n *Narrowing) add(a *area, rest []string) {
	part := a
	if len(rest) > 0 {
		below := filepath.Join(rest...)
		part = &area{path: filepath.Join(a.path, below), spelled: filepath.Join(a.spelled, below), within: a,
			rest: rest}
	}
	if slices.Contains(n.roots, part.path) {
		return
	}
	n.roots = append(n.roots, part.path)
	n.areas = n.areas.with(part, part.path, part.spelled)
}

// Narrow returns the Space with the roots of a Narrowing of it, or of one that it is a copy of. What may be read
// besides the roots stays, and so does a single file. A cwd that is in none of them any more becomes the first, if one
// remains. nil changes nothing.
func (s *Space) Narrow(n *Narrowing) *Space {
	if n == nil {
		return s
	}
	c := *s
	c.areas, c.roots, c.links, c.wanted = n.areas, n.roots, n.links, n.wanted
	for path, a := range s.areas {
		if a.readOnly || a.file {
			c.areas = c.areas.with(a, path)
		}
	}
	if a, _, ok := c.areas.find(c.cwd); len(c.roots) > 0 && (!ok || a.readOnly || a.file) {
		c.cwd = c.roots[0]
	}
	return &c
}
