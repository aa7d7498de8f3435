package filestate

import "bytes"

const (
	maxMoveBytes = 8 << 20 // of the differing middles of two contents that are compared line by line
	maxMoveLines = 200_000 // of each middle; a line costs about 50 bytes while it is compared
	maxMoveDepth = 16      // how often a gap between equal lines is looked at again
)

// moved carries spans of old over to new. What of new has no counterpart in old counts as seen: the
// session supplied it, or it was shown. Where old and new are too large to be compared, only what
// certainly was seen is covered; that costs another read and nothing else.
func moved(old, new []byte, spans []Span) []Span {
	if isWhole(spans, int64(len(old))) {
		return wholeOf(int64(len(new)))
	}
	m := mover{old: old, new: new, spans: spans}
	// Cut at line starts: an end of line that happens to be equal may belong to another line.
	head := commonPrefix(old, new)
	head = bytes.LastIndexByte(old[:head], '\n') + 1
	tail := commonSuffix(old[head:], new[head:])
	if !startsLine(old, len(old)-tail) || !startsLine(new, len(new)-tail) {
		_, rest, _ := bytes.Cut(old[len(old)-tail:], []byte("\n"))
		tail = len(rest)
	}
	m.equal(0, 0, head)
	m.middle(head, len(old)-tail, head, len(new)-tail)
	m.equal(len(old)-tail, len(new)-tail, tail)
	return normal(m.out, int64(len(new)))
}

// startsLine says whether a line begins at that place.
func startsLine(content []byte, at int) bool { return at == 0 || content[at-1] == '\n' }

type mover struct {
	old, new []byte
	spans    []Span // of old, normal
	out      []Span // of new
}

// equal says that n bytes at a in old are those at b in new.
func (m *mover) equal(a, b, n int) {
	from, to, shift := int64(a), int64(a+n), int64(b-a)
	for _, s := range m.spans {
		if s.From >= to {
			return
		}
		m.cover(max(s.From, from)+shift, min(s.To, to)+shift)
	}
}

// differ says that old[a:aTo] became new[b:bTo]. Only the bytes that differ are new, and the line end
// behind them if nothing else is left of the line.
func (m *mover) differ(a, aTo, b, bTo int) {
	head := commonPrefix(m.old[a:aTo], m.new[b:bTo])
	tail := commonSuffix(m.old[a+head:aTo], m.new[b+head:bTo])
	if head == 0 && len(bytes.Trim(m.new[bTo-tail:bTo], "\r\n")) == 0 {
		tail = 0
	}
	m.equal(a, b, head)
	m.cover(int64(b+head), int64(bTo-tail))
	m.equal(aTo-tail, bTo-tail, tail)
}

func (m *mover) cover(from, to int64) {
	if from < to {
		m.out = append(m.out, Span{from, to})
	}
}

// middle compares old[a:aTo] and new[b:bTo], which begin and end with lines, line by line.
func (m *mover) middle(a, aTo, b, bTo int) {
	if covers(m.spans, Span{int64(a), int64(aTo)}) {
		m.cover(int64(b), int64(bTo)) // the old was seen and the rest is new
		return
	}
	if aTo-a+bTo-b > maxMoveBytes {
		m.large(a, aTo, b, bTo)
		return
	}
	names := make(map[string]int)
	was := splitLines(m.old, a, aTo, names)
	is := splitLines(m.new, b, bTo, names)
	if len(was.names) > maxMoveLines || len(is.names) > maxMoveLines {
		m.large(a, aTo, b, bTo)
		return
	}
	var at, bt int // the lines up to here are done
	var pairs []pair
	align(was.names, is.names, 0, 0, maxMoveDepth, &pairs)
	for _, p := range append(pairs, pair{len(was.names), len(is.names), 0}) {
		m.changed(was.starts[at:p.a+1], is.starts[bt:p.b+1])
		m.equal(was.starts[p.a], is.starts[p.b], was.starts[p.a+p.n]-was.starts[p.a])
		at, bt = p.a+p.n, p.b+p.n
	}
}

// large is middle without a comparison: covered is only what certainly was seen.
func (m *mover) large(a, aTo, b, bTo int) {
	head := commonPrefix(m.old[a:aTo], m.new[b:bTo])
	tail := commonSuffix(m.old[a+head:aTo], m.new[b+head:bTo])
	m.equal(a, b, head)
	if covers(m.spans, Span{int64(a + head), int64(aTo - tail)}) {
		m.cover(int64(b+head), int64(bTo-tail))
	}
	m.equal(aTo-tail, bTo-tail, tail)
}

// changed handles lines without counterparts; was and is are their starts and the end of the last. As
// many lines as before are taken to be the same lines, each changed in itself.
func (m *mover) changed(was, is []int) {
	if len(was) != len(is) {
		m.differ(was[0], was[len(was)-1], is[0], is[len(is)-1])
		return
	}
	for i := range len(was) - 1 {
		m.differ(was[i], was[i+1], is[i], is[i+1])
	}
}

// A text is lines by number: equal lines have equal names. starts has the end of the last one, too.
type text struct{ names, starts []int }

func splitLines(content []byte, from, to int, names map[string]int) text {
	t := text{starts: []int{from}}
	for from < to && len(t.names) <= maxMoveLines {
		end := to
		if i := bytes.IndexByte(content[from:to], '\n'); i >= 0 {
			end = from + i + 1
		}
		name, ok := names[string(content[from:end])]
		if !ok {
			name = len(names)
			names[string(content[from:end])] = name
		}
		t.names, t.starts = append(t.names, name), append(t.starts, end)
		from = end
	}
	return t
}

// A pair says that n lines at a are those at b.
type pair struct{ a, b, n int }

// align finds lines of a and b that belong together, in order: equal ones at both ends, then those
// that occur once in each, and the same again in the gaps between. It may miss some, never invents any.
func align(a, b []int, aAt, bAt, depth int, out *[]pair) {
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	if head > 0 {
		*out = append(*out, pair{aAt, bAt, head})
	}
	midA, midB := a[head:len(a)-tail], b[head:len(b)-tail]
	if depth > 0 && len(midA) > 0 && len(midB) > 0 {
		i, j := 0, 0
		for _, p := range ascending(uniquePairs(midA, midB)) {
			align(midA[i:p.a], midB[j:p.b], aAt+head+i, bAt+head+j, depth-1, out)
			*out = append(*out, pair{aAt + head + p.a, bAt + head + p.b, 1})
			i, j = p.a+1, p.b+1
		}
		if i > 0 {
			align(midA[i:], midB[j:], aAt+head+i, bAt+head+j, depth-1, out)
		}
	}
	if tail > 0 {
		*out = append(*out, pair{aAt + len(a) - tail, bAt + len(b) - tail, tail})
	}
}

// uniquePairs returns the lines that occur exactly once in a and once in b, by their place in a.
func uniquePairs(a, b []int) []pair {
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
	var out []pair
	for i, name := range a {
		if p := places[name]; p.inA == 1 && p.inB == 1 {
			out = append(out, pair{i, p.at, 1})
		}
	}
	return out
}

// ascending returns a longest part of pairs whose b grows, too (patience sorting).
func ascending(pairs []pair) []pair {
	var tops []int // for each length, the pair that ends such a run with the smallest b
	before := make([]int, len(pairs))
	for i, p := range pairs {
		lo, hi := 0, len(tops)
		for lo < hi {
			if mid := (lo + hi) / 2; pairs[tops[mid]].b < p.b {
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
	out := make([]pair, len(tops))
	if len(tops) == 0 {
		return out
	}
	for i, at := len(tops)-1, tops[len(tops)-1]; i >= 0; i, at = i-1, before[at] {
		out[i] = pairs[at]
	}
	return out
}

// commonPrefix counts the bytes that a and b share at their beginning.
func commonPrefix(a, b []byte) int {
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

// commonSuffix counts the bytes that a and b share at their end.
func commonSuffix(a, b []byte) int {
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
