package search

import (
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	maxDirs  = 4096 // directories whose entries are counted one by one; those of all others are counted nowhere
	maxGroup = 5    // groups that an answer names
)

// An InDir is a number of entries below a directory.
type InDir struct {
	Path string // absolute
	N    int
}

// A tally counts entries by their directory.
type tally map[string]int

func (t tally) add(rel string, n int) {
	dir := path.Dir(rel)
	if _, ok := t[dir]; ok || len(t) < maxDirs {
		t[dir] += n
	}
}

// groups joins directories until few are left, the fullest first. What they have in common is part of their names.
func (t tally) groups() []InDir {
	maps.DeleteFunc(t, func(_ string, n int) bool { return n <= 0 })
	common, first := "", true
	for dir := range t {
		if first {
			common, first = dir, false
		}
		for common != "." && dir != common && !strings.HasPrefix(dir, common+"/") {
			common = path.Dir(common)
		}
	}
	sums := map[string]int{}
	for dir, n := range t {
		rest := dir
		if common != "." {
			rest = strings.TrimPrefix(strings.TrimPrefix(dir, common), "/")
		}
		next, _, _ := strings.Cut(rest, "/")
		sums[path.Join(common, next)] += n
	}
	var out []InDir
	for dir, n := range sums {
		out = append(out, InDir{dir, n})
	}
	slices.SortFunc(out, func(a, b InDir) int {
		if a.N != b.N {
			return b.N - a.N
		}
		return comparePaths(a.Path, b.Path)
	})
	return out[:min(len(out), maxGroup)]
}
