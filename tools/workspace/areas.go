package workspace

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// areas finds an area by its exact path, canonical or as configured. It does not change; with makes a copy.
type areas map[string]*area

// with adds an area under its spellings.
func (as areas) with(a *area, spellings ...string) areas {
	c := maps.Clone(as)
	if c == nil {
		c = areas{}
	}
	for _, path := range spellings {
		// A root that is named as readable, too, stays a root.
		if have, ok := c[key(path)]; !ok || have.readOnly {
			c[key(path)] = a
		}
	}
	return c
}

// all returns each area once.
func (as areas) all() []*area {
	var list []*area
	for a := range maps.Values(as) {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// find returns the innermost area that path lies in, and the components below it. It compares whole components,
// longest first; ok is false if path lies in no area. A configured spelling that is not canonical counts only outside
// all other areas: inside one it is a link like any other, and may have been changed since the start.
func (as areas) find(path string) (a *area, rest []string, ok bool) {
	for at := path; ; at = filepath.Dir(at) {
		up := filepath.Dir(at)
		if a, ok := as[key(at)]; ok && (key(at) == key(a.path) || !as.covers(up)) {
			slices.Reverse(rest)
			return a, rest, true
		}
		if at == up {
			return nil, nil, false
		}
		rest = append(rest, filepath.Base(at))
	}
}

func (as areas) covers(path string) bool {
	_, _, ok := as.find(path)
	return ok
}

// canonical replaces the configured spelling of an area at the beginning of path by its canonical path.
func (as areas) canonical(path string) string {
	a, rest, ok := as.find(path)
	if !ok {
		return path
	}
	return filepath.Join(append([]string{a.path}, rest...)...)
}

// key is how a path is looked up. Windows ignores case, and a root must be found however its name is written.
func key(path string) string {
	if onWindows {
		return strings.ToLower(path)
	}
	return path
}
