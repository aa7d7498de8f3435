package pattern

import "bytes"

// needles are strings one of which is in every match. The zero value knows none.
type needles struct {
	list  []needle
	plain bool // each place of a needle is a match by itself
}

// A needle is one string to look for.
type needle struct {
	text []byte
	fold bool // without ASCII case; text is lowered
	rare int  // the offset of the rarest byte
}

func newNeedles(set []string, fold, plain bool) needles {
	out := needles{plain: plain}
	for _, s := range set {
		n := needle{text: []byte(s), fold: fold}
		if fold {
			n.text = bytes.ToLower(n.text)
		}
		for i, c := range n.text {
			if rank(c) < rank(n.text[n.rare]) {
				n.rare = i
			}
		}
		out.list = append(out.list, n)
	}
	return out
}

// A finder looks for needles in one buffer from the front to the back. It belongs to one worker.
type finder struct {
	needles *needles
	buf     []byte
	next    []int // by needle: its next place at or behind the last question; len(buf): none
}

// reset begins a buffer.
func (f *finder) reset(buf []byte) {
	f.buf = buf
	f.next = f.next[:0]
	for range f.needles.list {
		f.next = append(f.next, -1)
	}
}

// find returns the first place of a needle at or behind from, or -1. from never goes back.
func (f *finder) find(from int) int {
	best := len(f.buf)
	for i := range f.needles.list {
		if f.next[i] < from {
			n := f.needles.list[i].index(f.buf[from:])
			if n < 0 {
				n = len(f.buf)
			}
			f.next[i] = from + n
		}
		best = min(best, f.next[i])
	}
	if best >= len(f.buf) {
		return -1
	}
	return best
}

// index returns the first place of the needle in buf, or -1.
func (n *needle) index(buf []byte) int {
	if !n.fold {
		return bytes.Index(buf, n.text)
	}
	lower := n.text[n.rare]
	upper := lower
	if 'a' <= lower && lower <= 'z' {
		upper = lower - 'a' + 'A'
	}
	// The next places of both cases; each is looked for again only when it was passed.
	low, up := -1, -1
	for at := n.rare; at < len(buf); {
		if low < at {
			low = nextByte(buf, at, lower)
		}
		if up < at {
			up = low
			if upper != lower {
				up = nextByte(buf, at, upper)
			}
		}
		hit := min(low, up)
		start := hit - n.rare
		if hit >= len(buf) || start+len(n.text) > len(buf) {
			return -1
		}
		if equalFold(buf[start:start+len(n.text)], n.text) {
			return start
		}
		at = hit + 1
	}
	return -1
}

// nextByte returns the first place of c at or behind from, or len(buf).
func nextByte(buf []byte, from int, c byte) int {
	if i := bytes.IndexByte(buf[from:], c); i >= 0 {
		return from + i
	}
	return len(buf)
}

// equalFold compares a text with a lowered one of the same length, without ASCII case.
func equalFold(text, lowered []byte) bool {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lowered[i] {
			return false
		}
	}
	return true
}
