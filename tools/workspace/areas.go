package workspace

import (
	"maps"
	"os"
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

// find returns the innermost area that path (clean) lies in, and the components below it. It compares whole components,
// longest first; ok is false if path lies in no area. A configured spelling that is not canonical counts only outside
// all other areas: inside one it is a link like any other, and may have been changed since the start.
//
// It goes through the areas, which are few, and not through the components of path, of which a caller can send many.
func (as areas) find(path string) (a *area, rest []string, ok bool) {
	best := ""
	for spelled, of := range as {
		if len(spelled) > len(best) && holds(spelled, path) &&
			(spelled == key(of.path) || !as.covers(filepath.Dir(path[:len(spelled)]))) {
			a, best = of, spelled
		}
	}
	if a == nil {
		return nil, nil, false
	}
	return a, components(path[len(best):]), true
}

// holds says whether path, which is clean, is dir or lies in it. dir is a key.
func holds(dir, path string) bool {
	if len(path) < len(dir) || key(path[:len(dir)]) != dir {
		return false
	}
	return len(path) == len(dir) || os.IsPathSeparator(path[len(dir)]) || os.IsPathSeparator(dir[len(dir)-1])
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
