package seen

import (
	"bytes"

	"codehand/filestate/lines"
)

const (
	maxMoveBytes = 8 << 20 // of the differing middles of two contents that are compared line by line
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
	head := lines.Prefix(old, new)
	head = bytes.LastIndexByte(old[:head], '\n') + 1
	tail := lines.Suffix(old[head:], new[head:])
	if !lines.Starts(old, len(old)-tail) || !lines.Starts(new, len(new)-tail) {
		_, rest, _ := bytes.Cut(old[len(old)-tail:], []byte("\n"))
		tail = len(rest)
	}
	m.equal(0, 0, head)
	m.middle(head, len(old)-tail, head, len(new)-tail)
	m.equal(len(old)-tail, len(new)-tail, tail)
	return normal(m.out, int64(len(new)))
}

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
	head := lines.Prefix(m.old[a:aTo], m.new[b:bTo])
	tail := lines.Suffix(m.old[a+head:aTo], m.new[b+head:bTo])
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
	var names lines.Names
	was := lines.Split(m.old, a, aTo, &names)
	is := lines.Split(m.new, b, bTo, &names)
	if len(was.Names) > lines.MaxLines || len(is.Names) > lines.MaxLines {
		m.large(a, aTo, b, bTo)
		return
	}
	var at, bt int // the lines up to here are done
	for _, p := range append(lines.Aligned(was.Names, is.Names), lines.Pair{A: len(was.Names), B: len(is.Names)}) {
		m.changed(was.Starts[at:p.A+1], is.Starts[bt:p.B+1])
		m.equal(was.Starts[p.A], is.Starts[p.B], was.Starts[p.A+p.N]-was.Starts[p.A])
		at, bt = p.A+p.N, p.B+p.N
	}
}

// large is middle without a comparison: covered is only what certainly was seen.
func (m *mover) large(a, aTo, b, bTo int) {
	head := lines.Prefix(m.old[a:aTo], m.new[b:bTo])
	tail := lines.Suffix(m.old[a+head:aTo], m.new[b+head:bTo])
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
