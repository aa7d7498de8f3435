package page

import "bytes"

// decodedPiece is how much of a line is decoded at once, in bytes.
const decodedPiece = 64 << 10

// An Encoding says how the bytes of a text are read. The zero value is UTF-8, with or without its mark.
type Encoding struct {
	Unit      int // bytes of a code unit, 1, 2 or 4, by which line ends are found; 0: 1
	BigEndian bool
	Mark      int // bytes before the text that are not part of it; a multiple of Unit

	// Decode makes text of whole characters, and says how many bytes or units are none. It runs for lines of the page
	// only, in the goroutine of the caller. nil: UTF-8, of which wrong bytes stay as they are, and Mark and Unit do not
	// count.
	Decode func(raw []byte) (text string, bad int)
}

// unit is Unit where it counts.
func (e Encoding) unit() int {
	if e.Decode == nil {
		return 1
	}
	return max(e.Unit, 1)
}

// mark returns the length of the mark at the start of a text.
func (e Encoding) mark(head []byte) int {
	switch {
	case e.Decode != nil:
		return min(e.Mark, len(head))
	case bytes.HasPrefix(head, []byte(utf8Mark)):
		return len(utf8Mark)
	}
	return 0
}

// lineEnd returns the offset of the first unit of b that is a line feed; -1: there is none. b begins with a unit.
func (e Encoding) lineEnd(b []byte) int {
	unit := e.unit()
	if unit == 1 {
		return bytes.IndexByte(b, '\n')
	}
	low := 0 // of the byte that tells, in its unit
	if e.BigEndian {
		low = unit - 1
	}
	for at := 0; ; {
		n := bytes.IndexByte(b[at:], '\n')
		if n < 0 {
			return -1
		}
		at += n
		from := at - low
		if from >= 0 && from%unit == 0 && from+unit <= len(b) && zerosBut(b[from:from+unit], low) {
			return from
		}
		at++
	}
}

// zerosBut says whether all bytes but one are zero.
func zerosBut(b []byte, but int) bool {
	for i, c := range b {
		if i != but && c != 0 {
			return false
		}
	}
	return true
}

// lineEnds counts the units of b that are line feeds.
func (e Encoding) lineEnds(b []byte) int {
	if e.unit() == 1 {
		return bytes.Count(b, []byte{'\n'})
	}
	n := 0
	for {
		at := e.lineEnd(b)
		if at < 0 {
			return n
		}
		n++
		b = b[at+e.unit():]
	}
}

// A lineText is a lineHead for a text in any encoding.
type lineText struct {
	lineHead
	decode func([]byte) (string, int) // nil: none needed
	raw    []byte                     // not yet decoded
	bad    int                        // bytes that are no text
}

// add takes the next piece of the line.
func (l *lineText) add(piece []byte) {
	if l.decode == nil {
		l.lineHead.add(piece)
		return
	}
	l.raw = append(l.raw, piece...)
	if len(l.raw) >= decodedPiece {
		l.flush(false)
	}
}

// flush decodes what is there. Unless the line ends here, a character whose last bytes are missing waits for them: an
// encoding says no more than that such bytes are bad, so the piece ends where the fewest are.
func (l *lineText) flush(last bool) {
	used := len(l.raw)
	text, bad := l.decode(l.raw)
	for n := used - 1; !last && bad > 0 && n > 0 && n > len(l.raw)-4; n-- {
		if t, b := l.decode(l.raw[:n]); b < bad {
			text, bad, used = t, b, n
		}
	}
	l.lineHead.add([]byte(text))
	l.bad += bad
	l.raw = append(l.raw[:0], l.raw[used:]...)
}

// end returns the line as lineHead does, with the bytes that are no text.
func (l *lineText) end(lf bool) (text string, cut, bad, ends int) {
	if l.decode != nil {
		l.flush(true)
	}
	bad, l.bad = l.bad, 0
	text, cut, ends = l.lineHead.end(lf)
	return text, cut, bad, ends
}
