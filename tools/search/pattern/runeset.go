package pattern

import (
	"slices"
	"sync"
	"unicode"
)

// fewRunes is up to where the members of a set are folded one by one.
const fewRunes = 128

// A runeSet is a set of runes: pairs of first and last, ascending, with gaps between them. It is the form in which
// regexp/syntax keeps a class. Sets are never changed once made, so that they can share their runes.
type runeSet []rune

// Sets of almost all runes.
var (
	anyRune  = runeSet{0, unicode.MaxRune}
	anyButLF = runeSet{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
)

// newRuneSet puts pairs of any order into a set.
func newRuneSet(pairs ...rune) runeSet {
	type span struct{ low, high rune }
	spans := make([]span, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] <= pairs[i+1] {
			spans = append(spans, span{pairs[i], pairs[i+1]})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.low - b.low) })
	out := make(runeSet, 0, 2*len(spans))
	for _, s := range spans {
		if n := len(out); n > 0 && s.low <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.high)
			continue
		}
		out = append(out, s.low, s.high)
	}
	return out
}

// ofTables joins Unicode tables.
func ofTables(tables ...*unicode.RangeTable) runeSet {
	var pairs []rune
	add := func(low, high, stride rune) {
		if stride == 1 {
			pairs = append(pairs, low, high)
			return
		}
		for r := low; r <= high; r += stride {
			pairs = append(pairs, r, r)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return newRuneSet(pairs...)
}

func (s runeSet) has(r rune) bool {
	low, high := 0, len(s)/2
	for low < high {
		mid := (low + high) / 2
		switch {
		case r < s[2*mid]:
			high = mid
		case r > s[2*mid+1]:
			low = mid + 1
		default:
			return true
		}
	}
	return false
}

// union takes time for the sizes of both, so that a pattern of many large classes costs no sorting.
func (s runeSet) union(t runeSet) runeSet {
	out := make(runeSet, 0, len(s)+len(t))
	for len(s) > 0 || len(t) > 0 {
		if len(s) == 0 || len(t) > 0 && t[0] < s[0] {
			s, t = t, s
		}
		low, high := s[0], s[1]
		s = s[2:]
		if n := len(out); n > 0 && low <= out[n-1]+1 {
			out[n-1] = max(out[n-1], high)
			continue
		}
		out = append(out, low, high)
	}
	return out
}

func (s runeSet) negate() runeSet {
	out := make(runeSet, 0, len(s)+2)
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

func (s runeSet) intersect(t runeSet) runeSet {
	out := make(runeSet, 0, min(len(s), len(t))+2)
	for len(s) > 0 && len(t) > 0 {
		if low, high := max(s[0], t[0]), min(s[1], t[1]); low <= high {
			out = append(out, low, high)
		}
		if s[1] < t[1] {
			s = s[2:]
		} else {
			t = t[2:]
		}
	}
	return out
}

func (s runeSet) minus(t runeSet) runeSet { return s.intersect(t.negate()) }

// either gives what is in one of the sets but not in both.
func (s runeSet) either(t runeSet) runeSet { return s.union(t).minus(s.intersect(t)) }

// fold adds all runes that differ from a member in case only.
func (s runeSet) fold() runeSet {
	f := foldings()
	if few, ok := s.runes(fewRunes); ok {
		pairs := slices.Clone(s)
		for _, r := range few {
			for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
				pairs = append(pairs, o, o)
			}
		}
		return newRuneSet(pairs...)
	}
	// Both are in order, so one pass marks which runes are members.
	has := make([]bool, len(f.runes))
	rest := s
	for i, r := range f.runes {
		for len(rest) > 0 && rest[1] < r {
			rest = rest[2:]
		}
		if len(rest) == 0 {
			break
		}
		has[i] = rest[0] <= r
	}
	var more []rune
	for i, next := range f.next {
		for o := next; has[i] && int(o) != i; o = f.next[o] {
			if !has[o] {
				more = append(more, f.runes[o], f.runes[o])
			}
		}
	}
	if more == nil {
		return s
	}
	return s.union(newRuneSet(more...))
}

// foldings are all runes that have another case, in order, and for each the place of the next one of its circle.
var foldings = sync.OnceValue(func() (f struct {
	runes []rune
	next  []int32
}) {
	var runes []rune
	for _, c := range unicode.CaseRanges {
		for r := rune(c.Lo); r <= rune(c.Hi); r++ {
			for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
				runes = append(runes, r, o) // the circles of some lead out of the ranges
			}
		}
	}
	slices.Sort(runes)
	f.runes = slices.Compact(runes)
	place := map[rune]int32{}
	for i, r := range f.runes {
		place[r] = int32(i)
	}
	for _, r := range f.runes {
		f.next = append(f.next, place[unicode.SimpleFold(r)])
	}
	return f
})

// runes lists the members if there are at most limit.
func (s runeSet) runes(limit int) ([]rune, bool) {
	var out []rune
	for i := 0; i < len(s); i += 2 {
		if int(s[i+1]-s[i]) >= limit-len(out) {
			return nil, false
		}
		for r := s[i]; r <= s[i+1]; r++ {
			out = append(out, r)
		}
	}
	return out, true
}
