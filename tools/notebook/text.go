package notebook

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendText appends what the string s says to dst, and stops soon after dst has max bytes; whole is then false. Bytes
// that are not UTF-8 and halves of surrogate pairs become U+FFFD, as encoding/json has it.
func (d doc) appendText(dst []byte, s span, max int) (out []byte, whole bool) {
	rest := d[s.from+1 : s.to-1]
	for len(rest) > 0 {
		if len(dst) >= max {
			return dst, false
		}
		plain := bytes.IndexByte(rest, '\\')
		if plain < 0 {
			plain = len(rest)
		}
		if plain > 0 {
			plain = atRune(rest, min(plain, max-len(dst)))
			dst = appendValid(dst, rest[:plain])
			rest = rest[plain:]
			continue
		}
		r, n := unescape(rest)
		dst = utf8.AppendRune(dst, r)
		rest = rest[n:]
	}
	return dst, true
}

// atRune moves the end n of a prefix of b to the end of the character that it would cut.
func atRune(b []byte, n int) int {
	for end := min(n+utf8.UTFMax-1, len(b)); n < end && !utf8.RuneStart(b[n]); {
		n++
	}
	return n
}

func appendValid(dst, b []byte) []byte {
	if utf8.Valid(b) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r)
		b = b[n:]
	}
	return dst
}

// unescape reads the escape at the beginning of b, and its second half if it is a surrogate pair; n is its length.
func unescape(b []byte) (r rune, n int) {
	if i := strings.IndexByte("bfnrt", b[1]); i >= 0 {
		return rune("\b\f\n\r\t"[i]), 2
	}
	r, ok := hex4(b)
	if !ok {
		return rune(b[1]), 2
	}
	if utf16.IsSurrogate(r) {
		if low, ok := hex4(b[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

// hex4 reads a \uXXXX at the beginning of b.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendLines appends what a string, or a list of strings one after the other, says. Anything else says nothing.
func (d doc) appendLines(dst []byte, v span, max int) (out []byte, whole bool) {
	if d.is(v, '"') {
		return d.appendText(dst, v, max)
	}
	for line := range d.elements(v) {
		if !d.is(line, '"') {
			continue
		}
		if dst, whole = d.appendText(dst, line, max); !whole {
			return dst, false
		}
	}
	return dst, true
}

// appendBase64 is appendLines without white space, into which some programs break base64, and without what fills it up
// at the end. Neither counts: whole is false if there are more than max bytes besides.
func (d doc) appendBase64(dst []byte, v span, max int) (out []byte, whole bool) {
	if d.is(v, '"') {
		return d.appendPacked(dst, v, max)
	}
	for line := range d.elements(v) {
		if !d.is(line, '"') {
			continue
		}
		if dst, whole = d.appendPacked(dst, line, max); !whole {
			return dst, false
		}
	}
	return dst, true
}

// appendPacked is appendBase64 of one string.
func (d doc) appendPacked(dst []byte, s span, max int) (out []byte, whole bool) {
	for rest := d[s.from+1 : s.to-1]; len(rest) > 0; {
		r, n := rune(rest[0]), 1 // what is not ASCII is no base64, whatever it says
		if r == '\\' {
			r, n = unescape(rest)
		}
		rest = rest[n:]
		switch r {
		case ' ', '\t', '\r', '\n', '=':
			continue
		}
		if len(dst) >= max {
			return dst, false
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}

// escapesAll says that the file has characters beyond ASCII only as escapes, as some programs write it.
func (d doc) escapesAll() bool {
	for _, b := range d {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	for rest := []byte(d); ; {
		i := bytes.Index(rest, []byte(`\u`))
		if i < 0 {
			return false
		}
		rest = rest[i:]
		if r, ok := hex4(rest); ok && r >= utf8.RuneSelf {
			return true
		}
		rest = rest[2:]
	}
}

// appendQuoted appends s as a JSON string, with no more escapes than needed; ascii: and none but ASCII characters.
// Bytes that are not UTF-8 become U+FFFD.
func appendQuoted(dst []byte, s string, ascii bool) []byte {
	const digits = "0123456789abcdef"
	unit := func(u rune) {
		dst = append(dst, '\\', 'u', digits[u>>12&15], digits[u>>8&15], digits[u>>4&15], digits[u&15])
	}
	dst = append(dst, '"')
	for _, r := range s {
		switch i := strings.IndexRune("\"\\\b\f\n\r\t", r); {
		case i >= 0:
			dst = append(dst, '\\', `"\bfnrt`[i])
		case r < ' ':
			unit(r)
		case !ascii || r < utf8.RuneSelf:
			dst = utf8.AppendRune(dst, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			unit(high)
			unit(low)
		default:
			unit(r)
		}
	}
	return append(dst, '"')
}
