package jsonrpc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted reads a string. It stands on the quote.
func (s *scan) quoted() (jsonText, bool) {
	t := jsonText{from: s.pos + 1}
	i := t.from
	for {
		i = plainEnd(s.msg, i)
		if i == len(s.msg) {
			s.pos = i
			return t, false
		}
		switch c := s.msg[i]; {
		case c == '"':
			t.to, s.pos = i, i+1
			return t, true
		case c == '\\':
			t.escaped = true
			n, paired := escape(s.msg[i:])
			if n <= 0 {
				s.pos = i - n
				return t, false
			}
			if !paired {
				s.fail(checkSurrogate, "unpaired surrogate")
			}
			i += n
		case c < ' ':
			s.pos = i
			return t, false
		default:
			r, n := utf8.DecodeRune(s.msg[i:])
			if r == utf8.RuneError && n == 1 {
				s.pos = i
				return t, false
			}
			i += n
		}
	}
}

// Every byte of a word, for plainEnd.
const (
	everyLow  = 0x0101010101010101
	everyHigh = 0x80 * everyLow
)

// plainEnd returns the first place from i on that holds a quote, a backslash, a control character or
// a byte outside ASCII; len(b) if there is none. It looks at eight bytes at a time: in each term the
// lowest high bit that is set marks the first byte that matches.
func plainEnd(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^('"'*everyLow), w^('\\'*everyLow)
		hit := ((quote-everyLow)&^quote | (slash-everyLow)&^slash | (w-' '*everyLow)&^w | w) & everyHigh
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// escape returns the length of the escape that b begins with: both halves of a surrogate pair
// together. paired is false for half a pair. For what is no escape n is zero or less: -n is the place
// of the byte that cannot be.
func escape(b []byte) (n int, paired bool) {
	if len(b) < 2 {
		return -len(b), false
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case 'u':
		r, bad := hex4(b)
		if bad != 0 {
			return -bad, false
		}
		if !utf16.IsSurrogate(r) {
			return 6, true
		}
		if r < 0xDC00 && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, bad := hex4(b[6:]); bad == 0 && low >= 0xDC00 && low <= 0xDFFF {
				return 12, true
			}
		}
		return 6, false
	}
	return -1, false
}

// hex4 reads `\uXXXX`; bad is the place of the byte that is no hex digit, 0 if there is none.
func hex4(b []byte) (r rune, bad int) {
	for i := 2; i < 6; i++ {
		if i >= len(b) {
			return 0, len(b)
		}
		c := b[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, i
		}
		r = r<<4 | rune(c)
	}
	return r, 0
}

// unescape appends the text that a string's bytes stand for. Half a surrogate pair becomes the three
// bytes that its number would have, so that different halves stay different keys.
func unescape(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return append(dst, b...)
		}
		dst, b = append(dst, b[:i]...), b[i:]
		n, paired := escape(b)
		if n <= 0 {
			return append(dst, b...)
		}
		dst = appendEscape(dst, b[:n], paired)
		b = b[n:]
	}
}

func appendEscape(dst, b []byte, paired bool) []byte {
	switch c := b[1]; c {
	case 'b':
		return append(dst, '\b')
	case 'f':
		return append(dst, '\f')
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'u':
		r, _ := hex4(b)
		switch {
		case !paired:
			return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
		case len(b) == 12:
			low, _ := hex4(b[6:])
			r = utf16.DecodeRune(r, low)
		}
		return utf8.AppendRune(dst, r)
	default:
		return append(dst, c)
	}
}
