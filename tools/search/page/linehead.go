package page

import (
	"slices"
	"unicode/utf8"
)

// utf8Mark may stand at the start of a text; it is not part of its first line.
const utf8Mark = "\ufeff"

// A lineHead keeps the head of a line that comes in pieces, and counts the runes of the rest, so that nothing grows
// with the line. A byte that is not UTF-8 counts as a rune.
type lineHead struct {
	maxRunes int   // 0: no limit
	maxBytes int64 // 0: no limit
	lacked   bool  // of the line that ended last: it was cut by maxBytes

	text  []byte
	runes int // in text
	over  int // runes left out
	rest  []byte
	cr    bool // the last byte so far was a CR
	cut   bool // by maxBytes
}

// add takes the next piece of the line. A rune that is not complete yet waits for the next piece.
func (l *lineHead) add(piece []byte) {
	if len(l.rest) > 0 {
		piece = slices.Concat(l.rest, piece)
		l.rest = nil
	}
	whole := len(piece) - partialRune(piece)
	l.rest = append(l.rest, piece[whole:]...)
	l.take(piece[:whole])
}

// partialRune returns the length of a rune at the end of b whose last bytes are missing.
func partialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// take takes whole runes.
func (l *lineHead) take(b []byte) {
	if len(b) == 0 {
		return
	}
	l.cr = b[len(b)-1] == '\r'
	if l.maxRunes == 0 && l.maxBytes == 0 {
		l.text = append(l.text, b...)
		return
	}
	for len(b) > 0 && l.over == 0 {
		_, n := utf8.DecodeRune(b)
		if l.maxRunes > 0 && l.runes == l.maxRunes {
			break
		}
		if l.maxBytes > 0 && int64(len(l.text)+n) > l.maxBytes {
			l.cut = true
			break
		}
		l.text = append(l.text, b[:n]...)
		l.runes++
		b = b[n:]
	}
	l.over += utf8.RuneCount(b)
}

// end returns the text of the line, the number of runes left out, and how many characters its end has, and makes ready
// for the next line. A CR that was the last byte before an LF is part of that end.
func (l *lineHead) end(lf bool) (line string, cut, ends int) {
	rest := l.rest
	l.rest = nil
	l.take(rest)
	over, text := l.over, l.text
	if lf {
		ends = 1
	}
	if lf && l.cr {
		ends = 2
		if over > 0 {
			over--
		} else {
			text = text[:len(text)-1]
		}
	}
	s := string(text)
	*l = lineHead{maxRunes: l.maxRunes, maxBytes: l.maxBytes, text: l.text[:0], lacked: l.cut && over > 0}
	return s, over, ends
}
