package workspace

import (
	"path/filepath"
	"slices"
)

// A Narrowing is the part of a Space's roots that somebody without rights over them wants to be used, such as a client. It
// is made once and does not change.
type Narrowing struct {
	areas areas
	roots []string   // canonical, in the order in which they were named
	links *linkIndex // of these roots: an index of fewer must not answer for all
}

// Narrowing makes one of the directories named by dirs, absolute paths or file URLs, as far as they lie in the roots or hold
// some of them: it never adds anything. unused are those of dirs that do neither, and what is no path. nil: what remains
// are all the roots, or none, and then nothing is narrowed. dirs need not exist; links in them are resolved now, and what
// is a link later leads nowhere.
func (s *Space) Narrowing(dirs []string) (n *Narrowing, unused []string) {
	n = &Narrowing{links: &linkIndex{now: s.links.now}}
	for _, dir := range dirs {
		path, err := decodeURL(dir, onWindows)
		if err != nil || !filepath.IsAbs(path) || checkText(path, onWindows) != nil || !n.take(s, realAsFarAsItGoes(filepath.Clean(path))) {
			unused = append(unused, dir)
		}
	}
	whole := func(root string) bool { return slices.Contains(n.roots, root) }
	if len(n.roots) == 0 || !slices.ContainsFunc(s.roots, func(root string) bool { return !whole(root) }) {
		return nil, unused
	}
	return n, unused
}

// take adds what dir (canonical) and the roots have in common; false: nothing.
func (n *Narrowing) take(s *Space, dir string) bool {
	before := len(n.roots)
	a, rest, in := s.areas.find(dir)
	if in = in && !a.readOnly && !a.file; in {
		n.add(a, rest)
	}
	for _, root := range s.roots {
		if a, _, ok := s.areas.find(root); ok && rootIn(root, dir) {
			in = true
			n.add(a, nil)
		}
	}
	return in || len(n.roots) > before
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
		part = &area{path: filepath.Join(a.path, below), spelled: filepath.Join(a.spelled, below), within: a, rest: rest}
	}
	if slices.Contains(n.roots, part.path) {
		return
	}
	n.roots = append(n.roots, part.path)
	n.areas = n.areas.with(part, part.path, part.spelled)
}

// Narrow returns the Space with the roots of a Narrowing of it, or of one that it is a copy of. What may be read besides
// the roots stays, and so does a single file. A cwd that is in none of them any more becomes the first. nil changes nothing.
func (s *Space) Narrow(n *Narrowing) *Space {
	if n == nil {
		return s
	}
	c := *s
	c.areas, c.roots, c.links = n.areas, n.roots, n.links
	for path, a := range s.areas {
		if a.readOnly || a.file {
			c.areas = c.areas.with(a, path)
		}
	}
	if a, _, ok := c.areas.find(c.cwd); !ok || a.readOnly || a.file {
		c.cwd = c.roots[0]
	}
	return &c
}
