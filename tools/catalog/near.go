package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many names are proposed for one that is unknown.
const maxNear = 3

// longestName is the length in bytes from which on a name resembles nothing: the limit of a protocol's names is 64.
const longestName = 64

// Nearest are at most 3 names of entries that name may have been meant for, best first: those that differ from it, or
// have an alias that does, by few letters; if there are none, those that other agents call so, the listed ones first;
// if there are none, those that share a word with it, the more of them the better.
func Nearest(entries []Entry, name string) []string {
	if len(name) > longestName {
		return nil
	}
	type scored struct {
		name             string
		distance, shared int
		late             int // 1: not always listed
	}
	low, own := strings.ToLower(name), parts(name)
	var all []scored
	for _, e := range entries {
		s := scored{name: e.Name, distance: far}
		if e.Deferred {
			s.late = 1
		}
		if slices.Contains(e.Elsewhere, low) {
			s.distance = elsewhere
		}
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if d := Distance(low, strings.ToLower(n)); d <= min(3, len(low)/3) {
				s.distance = min(s.distance, d)
			}
			s.shared = max(s.shared, shared(own, parts(n)))
		}
		if s.distance < far || s.shared > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.shared, a.shared),
			cmp.Compare(a.late, b.late), strings.Compare(a.name, b.name))
	})
	var near []string
	for _, s := range all[:min(maxNear, len(all))] {
		if s.distance >= elsewhere && s.distance > all[0].distance {
			break
		}
		near = append(near, s.name)
	}
	return near
}

// Distances that are none: the names do not resemble each other. Another agent has the name for the tool, or it shares
// a word at most.
const (
	elsewhere = longestName + 1
	far       = longestName + 2
)

// shared counts the words that two names have in common.
func shared(a, b []string) int {
	n := 0
	for _, w := range a {
		if len(w) > 2 && slices.ContainsFunc(b, func(v string) bool { return stem(v) == stem(w) }) {
			n++
		}
	}
	return n
}

// Distance is the edit distance of two names, in bytes: how many are added, left out or changed. It costs the product
// of their lengths.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
