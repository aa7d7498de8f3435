package bash

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape reads the inside of $'…' as bash does. A NUL ends it.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for len(s) > 0 {
		if s[0] != '\\' || len(s) == 1 {
			b, s = append(b, s[0]), s[1:]
			continue
		}
		var ok bool
		if b, s, ok = escape(b, s[1:]); !ok {
			break
		}
	}
	return string(b)
}

// escape appends what one escape stands for; s begins behind its backslash. not ok: it stands for NUL.
func escape(b []byte, s string) (_ []byte, rest string, ok bool) {
	c := s[0]
	if i := strings.IndexByte(`abeEfnrtv\'"?`, c); i >= 0 {
		return append(b, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[i]), s[1:], true
	}
	switch {
	case '0' <= c && c <= '7':
		n, rest := number(s, 8, 3)
		return append(b, byte(n)), rest, byte(n) != 0
	case c == 'x':
		if n, rest := number(s[1:], 16, 2); len(rest) < len(s)-1 {
			return append(b, byte(n)), rest, n != 0
		}
	case c == 'u', c == 'U':
		if n, rest := number(s[1:], 16, map[byte]int{'u': 4, 'U': 8}[c]); len(rest) < len(s)-1 {
			return utf8.AppendRune(b, rune(n)), rest, n != 0
		}
	case c == 'c' && len(s) > 1:
		return append(b, s[1]&0x1f), s[2:], s[1]&0x1f != 0
	}
	return append(b, '\\', c), s[1:], true
}

// number reads up to most digits.
func number(s string, base, most int) (n uint64, rest string) {
	i := 0
	for i < len(s) && i < most {
		if _, err := strconv.ParseUint(s[i:i+1], base, 8); err != nil {
			break
		}
		i++
	}
	n, err := strconv.ParseUint(s[:i], base, 32)
	if err != nil {
		return 0, s // no digits
	}
	return n, s[i:]
}
