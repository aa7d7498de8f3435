package textedit

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeEscapes replaces \uXXXX, \u{X} and \xNN by the characters with these numbers, and returns the escapes that it
// found as they were written. If only is not nil, other escapes than those in it stay. So does a \\ with what follows
// it, and half of a surrogate pair.
func decodeEscapes(s string, only map[string]bool) (string, map[string]bool) {
	if !strings.Contains(s, `\u`) && !strings.Contains(s, `\x`) {
		return s, nil
	}
	var b strings.Builder
	found := map[string]bool{}
	for len(s) > 0 {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		r, size := escape(s)
		if size > 0 && (only == nil || only[s[:size]]) {
			found[s[:size]] = true
			b.WriteRune(r)
		} else {
			size = max(size, min(len(s), 2))
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	b.WriteString(s)
	return b.String(), found
}

// escape reads one escape at the start of s, or a pair of them for one character; size 0: there is none.
func escape(s string) (r rune, size int) {
	switch {
	case strings.HasPrefix(s, `\x`):
		return hex(s, 2, 2)
	case strings.HasPrefix(s, `\u{`):
		end := strings.IndexByte(s[:min(len(s), 10)], '}')
		if end < 0 {
			return 0, 0
		}
		r, size = hex(s, 3, end-3)
		size = min(size, 1) * (end + 1)
	case strings.HasPrefix(s, `\u`):
		if r, size = hex(s, 2, 4); !utf16.IsSurrogate(r) {
			break
		}
		if !strings.HasPrefix(s[size:], `\u`) {
			return 0, 0
		}
		low, n := hex(s[size:], 2, 4)
		r, size = utf16.DecodeRune(r, low), size+n
		if r == utf8.RuneError {
			return 0, 0
		}
	}
	if !utf8.ValidRune(r) {
		return 0, 0
	}
	return r, size
}

// hex reads n hexadecimal digits of s that begin behind the first skip bytes.
func hex(s string, skip, n int) (r rune, size int) {
	if n < 1 || len(s) < skip+n {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[skip:skip+n], 16, 32)
	if err != nil || v > 0x7fffffff {
		return 0, 0
	}
	return rune(v), skip + n
}
