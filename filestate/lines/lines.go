package lines

import "bytes"

// MaxLines is how many lines of a content are compared at most: each costs about 50 bytes meanwhile.
const MaxLines = 200_000

const maxMoveDepth = 16 // how often a gap between equal lines is looked at again

// Starts says whether a line begins at that place.
func Starts(content []byte, at int) bool { return at == 0 || content[at-1] == '\n' }

// A Text is lines by number: equal lines have equal names. Starts has the end of the last one, too.
type Text struct{ Names, Starts []int }

// Split returns the lines of content[from:to], which begins and ends with lines, up to one beyond MaxLines. names is of
// the caller: two contents that share it can be compared.
func Split(content []byte, from, to int, names *Names) Text {
	t := Text{Starts: []int{from}}
	for from < to && len(t.Names) <= MaxLines {
		end := to
		if i := bytes.IndexByte(content[from:to], '\n'); i >= 0 {
			end = from + i + 1
		}
		t.Names, t.Starts = append(t.Names, names.of(content[from:end])), append(t.Starts, end)
		from = end
	}
	return t
}

// A Pair says that N lines at A of one content are those at B of the other.
type Pair struct{ A, B, N int }

// Aligned returns the lines of a and b that belong together, by their names, in order. It may miss some, never invents
// any.
func Aligned(a, b []int) (pairs []Pair) {
	align(a, b, 0, 0, maxMoveDepth, &pairs)
	return pairs
}

// align finds lines of a and b that belong together, in order: equal ones at both ends, then those
// that occur once in each, and the same again in the gaps between. It may miss some, never invents any.
func align(a, b []int, aAt, bAt, depth int, out *[]Pair) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head > 0 {
		*out = append(*out, Pair{aAt, bAt, head})
	}
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	if depth > 0 && len(midA) > 0 && len(midB) > 0 {
		i, j := 0, 0
		for _, p := range ascending(uniquePairs(midA, midB)) {
			align(midA[i:p.A], midB[j:p.B], aAt+head+i, bAt+head+j, depth-1, out)
			*out = append(*out, Pair{aAt + head + p.A, bAt + head + p.B, 1})
			i, j = p.A+1, p.B+1
		}
		if i > 0 {
			align(midA[i:], midB[j:], aAt+head+i, bAt+head+j, depth-1, out)
		}
	}
	if tail > 0 {
		*out = append(*out, Pair{aAt + len(a) - tail, bAt + len(b) - tail, tail})
	}
}

// uniquePairs returns the lines that occur exactly once in a and once in b, by their place in a.
func uniquePairs(a, b []int) []Pair {
	type place struct{ inA, inB, at int }
	places := make(map[int]place, len(b))
	for j, name := range b {
		p := places[name]
		p.inB, p.at = p.inB+1, j
		places[name] = p
	}
	for _, name := range a {
		if p, ok := places[name]; ok {
			p.inA++
			places[name] = p
		}
	}
	var out []Pair
	for i, name := range a {
		if p := places[name]; p.inA == 1 && p.inB == 1 {
			out = append(out, Pair{i, p.at, 1})
		}
	}
	return out
}

// ascending returns a longest part of pairs whose b grows, too (patience sorting).
func ascending(pairs []Pair) []Pair {
	var tops []int // for each length, the pair that ends such a run with the smallest b
	before := make([]int, len(pairs))
	for i, p := range pairs {
		lo, hi := 0, len(tops)
		for lo < hi {
			if mid := (lo + hi) / 2; pairs[tops[mid]].B < p.B {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		before[i] = -1
		if lo > 0 {
			before[i] = tops[lo-1]
		}
		if lo == len(tops) {
			tops = append(tops, i)
		} else {
			tops[lo] = i
		}
	}
	out := make([]Pair, len(tops))
	if len(tops) == 0 {
		return out
	}
	for i, at := len(tops)-1, tops[len(tops)-1]; i >= 0; i, at = i-1, before[at] {
		out[i] = pairs[at]
	}
	return out
}

// Prefix counts the bytes that a and b share at their beginning.
func Prefix(a, b []byte) int {
	const step = 4096
	n, end := 0, min(len(a), len(b))
	for n+step <= end && bytes.Equal(a[n:n+step], b[n:n+step]) {
		n += step
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}

// Suffix counts the bytes that a and b share at their end.
func Suffix(a, b []byte) int {
	const step = 4096
	n, end := 0, min(len(a), len(b))
	for n+step <= end && bytes.Equal(a[len(a)-n-step:len(a)-n], b[len(b)-n-step:len(b)-n]) {
		n += step
	}
	for n < end && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// Changed counts the lines that a diff would show, from what both contents begin and end with. Of more than MaxLines
// between them, all count.
func Changed(before, after []byte, head, tail int) (added, removed int) {
	head = bytes.LastIndexByte(before[:head], '\n') + 1
	old, now := before[head:], after[head:]
	if rest := len(before) - tail; Starts(before, rest) && Starts(after, len(after)-tail) {
		old, now = old[:max(0, len(old)-tail)], now[:max(0, len(now)-tail)]
	} else if i := bytes.IndexByte(before[rest:], '\n'); i >= 0 {
		cut := tail - i - 1
		old, now = old[:max(0, len(old)-cut)], now[:max(0, len(now)-cut)]
	}
	names := new(Names)
	was, is := Split(old, 0, len(old), names), Split(now, 0, len(now), names)
	if len(was.Names) > MaxLines || len(is.Names) > MaxLines {
		return count(now), count(old)
	}
	added, removed = len(is.Names), len(was.Names)
	for _, p := range Aligned(was.Names, is.Names) {
		added, removed = added-p.N, removed-p.N
	}
	return added, removed
}

// count is how many lines a content has.
func count(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if !Starts(content, len(content)) {
		n++
	}
	return n
}
