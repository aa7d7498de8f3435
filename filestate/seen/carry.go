package seen

import (
	"bytes"
	"context"

	"codehand/filestate/disk"
	"codehand/filestate/lines"
)

// Left notes what a command of the session has left of a file. was is the digest of what the session has seen, in hex;
// another record than that is left alone.
func (r *Records) Left(ctx context.Context, path, was string, sum disk.Digest) {
	defer r.Lock(path)()
	rec, err := r.Load(ctx, path)
	if err != nil || !rec.Hashed() || rec.Hash.Hex() != was || sum == (disk.Digest{}) {
		return
	}
	rec.Left = sum
	_ = r.Save(ctx, rec) // a memory that fails costs the session a read
}

// LeftAs says that a command of the session made now of the content that was seen. v is what the caller says it has
// seen; "": what the record says.
func (r *Record) LeftAs(now Content, v Version) bool {
	return r.Hashed() && r.Left == now.Sum && (v == "" || v.names(r.Hash))
}

// Carried returns the record of what a command of the session made of the content that was seen, which is old. Lines
// that the command left alone are as seen as they were; those that it wrote are not.
func (r *Record) Carried(old []byte, now Content, stamp disk.Stamp) *Record {
	m := mover{spans: r.Spans}
	for _, s := range sharedLines(old, now.Bytes) {
		m.equal(s.a, s.b, s.n)
	}
	return &Record{Path: r.Path, Hash: now.Sum, Size: now.Size, Spans: normal(m.out, now.Size), View: noView,
		Stamp: stamp}
}

// Clash says that two changes are about the same lines: the one that made now of old, and the one that makes next of
// now. In doubt they are.
func Clash(old, now, next []byte) bool {
	first, second := gaps(sharedLines(old, now), len(old), len(now)), gaps(sharedLines(now, next), len(now), len(next))
	for len(first) > 0 && len(second) > 0 {
		f, s := first[0], second[0]
		switch {
		case f.b < s.a+s.aLen && s.a < f.b+f.bLen:
			return true
		case f.b+f.bLen <= s.a+s.aLen:
			first = first[1:]
		default:
			second = second[1:]
		}
	}
	return false
}

// Rewritten returns the lines of now that are not those of old, in order. Where lines were only taken away, it is the
// line that follows, or the last.
func Rewritten(old, now []byte) (all []Lines) {
	line, at := 1, 0
	for _, g := range gaps(sharedLines(old, now), len(old), len(now)) {
		line, at = line+bytes.Count(now[at:g.b], []byte("\n")), g.b
		from := line
		line, at = line+bytes.Count(now[at:g.b+g.bLen], []byte("\n")), g.b+g.bLen
		to := line
		if lines.Starts(now, at) {
			to--
		}
		if g.bLen == 0 && at == len(now) {
			from = max(from-1, 1)
		}
		all = append(all, Lines{from, max(from, to)})
	}
	return all
}

// A stretch is n bytes, whole lines, at a in one content and at b in another.
type stretch struct{ a, b, n int }

// sharedLines returns the lines that two contents share, in order. It may miss some, never invents any.
func sharedLines(old, now []byte) (shared []stretch) {
	add := func(a, b, n int) {
		if n > 0 {
			shared = append(shared, stretch{a, b, n})
		}
	}
	head := lines.Prefix(old, now)
	if head < max(len(old), len(now)) {
		head = bytes.LastIndexByte(old[:head], '\n') + 1
	}
	tail := lines.Suffix(old[head:], now[head:])
	if !lines.Starts(old, len(old)-tail) || !lines.Starts(now, len(now)-tail) {
		_, rest, _ := bytes.Cut(old[len(old)-tail:], []byte("\n"))
		tail = len(rest)
	}
	add(0, 0, head)
	if len(old)+len(now)-2*(head+tail) <= maxMoveBytes {
		var names lines.Names
		was, is := lines.Split(old, head, len(old)-tail, &names), lines.Split(now, head, len(now)-tail, &names)
		if len(was.Names) <= lines.MaxLines && len(is.Names) <= lines.MaxLines {
			for _, p := range lines.Aligned(was.Names, is.Names) {
				add(was.Starts[p.A], is.Starts[p.B], was.Starts[p.A+p.N]-was.Starts[p.A])
			}
		}
	}
	add(len(old)-tail, len(now)-tail, tail)
	return shared
}

// A gap is what lies between shared lines: bytes of one content, and those of the other in their place.
type gap struct{ a, aLen, b, bLen int }

// gaps returns what two contents of these sizes do not share, in order.
func gaps(shared []stretch, old, now int) (all []gap) {
	a, b := 0, 0
	for _, s := range append(shared, stretch{a: old, b: now}) {
		if s.a > a || s.b > b {
			all = append(all, gap{a, s.a - a, b, s.b - b})
		}
		a, b = s.a+s.n, s.b+s.n
	}
	return all
}
