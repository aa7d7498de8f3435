// Package compare finds which lines of two texts differ. It is pure, and its work is bounded whatever the texts are.
package compare

import (
	"slices"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

const (
	// closeLines is how many lines of both sides together are given to the library at once. Its work grows with the
	// square.
	closeLines = 2_000
	// maxSplits is how often a stretch may be split at its unique lines, one split within the other.
	maxSplits = 8
)

// A Change is a stretch of lines that differ: those of old from OldFrom up to OldTo, counted from 0, and those of new
// that stand there instead.
type Change struct{ OldFrom, OldTo, NewFrom, NewTo int }

// Lines returns where old and new differ, in order, with at least one equal line between two changes.
func Lines(old, new []string) []Change {
	d := differ{ids: map[string]rune{}}
	d.compare(d.number(old), d.number(new), 0, 0, 0)
	return d.found
}

// A differ compares lines by numbers. Its work is bounded: long stretches are split at lines that are unique in both,
// and a long stretch without such lines counts as changed whole.
type differ struct {
	ids   map[string]rune
	found []Change
}

// number gives equal lines equal numbers.
func (d *differ) number(lines []string) []rune {
	numbers := make([]rune, len(lines))
	for i, line := range lines {
		id, ok := d.ids[line]
		if !ok {
			id = lineRune(len(d.ids))
			d.ids[line] = id
		}
		numbers[i] = id
	}
	return numbers
}

// lineRune makes a rune of a number: the library turns runes into strings and back, which surrogates do not survive.
func lineRune(n int) rune {
	if n >= 0xd800-1 {
		n += 0xe000 - 0xd800
	}
	return rune(n + 1)
}

// compare adds the changes between old and new, which begin at the given lines.
func (d *differ) compare(old, new []rune, oldAt, newAt, depth int) {
	for len(old) > 0 && len(new) > 0 && old[0] == new[0] {
		old, new, oldAt, newAt = old[1:], new[1:], oldAt+1, newAt+1
	}
	for len(old) > 0 && len(new) > 0 && old[len(old)-1] == new[len(new)-1] {
		old, new = old[:len(old)-1], new[:len(new)-1]
	}
	switch {
	case len(old) == 0 || len(new) == 0:
		d.add(Change{oldAt, oldAt + len(old), newAt, newAt + len(new)})
		return
	case len(old)+len(new) <= closeLines:
		d.library(old, new, oldAt, newAt)
		return
	}
	anchors := uniqueInBoth(old, new)
	if len(anchors) == 0 || depth == maxSplits {
		d.add(Change{oldAt, oldAt + len(old), newAt, newAt + len(new)})
		return
	}
	i, j := 0, 0
	for _, at := range append(anchors, [2]int{len(old), len(new)}) {
		d.compare(old[i:at[0]], new[j:at[1]], oldAt+i, newAt+j, depth+1)
		i, j = at[0], at[1]
	}
}

// library has a short stretch compared by go-diff.
func (d *differ) library(old, new []rune, oldAt, newAt int) {
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0 // its clock would make the answer depend on the machine
	c := Change{oldAt, oldAt, newAt, newAt}
	for _, step := range dmp.DiffMainRunes(old, new, false) {
		n := utf8.RuneCountInString(step.Text)
		switch step.Type {
		case diffmatchpatch.DiffDelete:
			c.OldTo += n
		case diffmatchpatch.DiffInsert:
			c.NewTo += n
		case diffmatchpatch.DiffEqual:
			d.add(c)
			c = Change{c.OldTo + n, c.OldTo + n, c.NewTo + n, c.NewTo + n}
		}
	}
	d.add(c)
}

// add appends a change, if it is one; one that begins where the last ended becomes part of it.
func (d *differ) add(c Change) {
	if c.OldFrom == c.OldTo && c.NewFrom == c.NewTo {
		return
	}
	if n := len(d.found); n > 0 && d.found[n-1].OldTo == c.OldFrom && d.found[n-1].NewTo == c.NewFrom {
		d.found[n-1].OldTo, d.found[n-1].NewTo = c.OldTo, c.NewTo
		return
	}
	d.found = append(d.found, c)
}

// uniqueInBoth returns pairs of indexes of lines that are in old once and in new once: the longest run of them that has
// the same order in both.
func uniqueInBoth(old, new []rune) [][2]int {
	type place struct{ oldN, newN, at int }
	places := map[rune]place{}
	for _, id := range old {
		p := places[id]
		p.oldN++
		places[id] = p
	}
	for j, id := range new {
		p := places[id]
		p.newN, p.at = p.newN+1, j
		places[id] = p
	}
	var pairs [][2]int
	for i, id := range old {
		if p := places[id]; p.oldN == 1 && p.newN == 1 {
			pairs = append(pairs, [2]int{i, p.at})
		}
	}
	return longestRising(pairs)
}

// longestRising returns the longest subsequence of pairs whose second members rise; the first ones do already.
func longestRising(pairs [][2]int) [][2]int {
	var ends []int                    // ends[n]: the pair that ends the best run of n+1 pairs
	before := make([]int, len(pairs)) // the pair before, in the best run that ends here
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(ends, p[1], func(e, want int) int { return pairs[e][1] - want })
		before[i] = -1
		if n > 0 {
			before[i] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	run := make([][2]int, len(ends))
	for n, i := len(ends)-1, ends[len(ends)-1]; n >= 0; n, i = n-1, before[i] {
		run[n] = pairs[i]
	}
	return run
}
