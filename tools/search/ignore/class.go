package ignore

import "strings"

// parseClass reads the class at the start of p, which begins with "[". It returns the bytes of the class
// and the length in p; 0 if the class is not closed or names an unknown POSIX class.
func parseClass(p string) (*[4]uint64, int) {
	set := new([4]uint64)
	i, negated := 1, false
	if i < len(p) && (p[i] == '!' || p[i] == '^') {
		negated = true
		i++
	}
	var prev byte // the byte that a range may begin with; 0: none
	for first := true; first || i < len(p) && p[i] != ']'; first = false {
		if i >= len(p) {
			return nil, 0
		}
		switch {
		case p[i] == '-' && prev != 0 && i+1 < len(p) && p[i+1] != ']':
			high, n := classByte(p[i+1:])
			if n == 0 {
				return nil, 0
			}
			addRange(set, prev, high)
			prev = 0
			i += 1 + n
		case strings.HasPrefix(p[i:], "[:"):
			n, known := addPosix(set, p[i:])
			if !known {
				return nil, 0
			}
			if prev = 0; n == 0 { // no ":]" follows: "[" is a byte like any other
				prev, n = '[', 1
				addRange(set, '[', '[')
			}
			i += n
		default:
			c, n := classByte(p[i:])
			if n == 0 {
				return nil, 0
			}
			addRange(set, c, c)
			prev = c
			i += n
		}
	}
	if i >= len(p) {
		return nil, 0
	}
	if negated {
		for w := range set {
			set[w] = ^set[w]
		}
	}
	return set, i + 1
}

// classByte reads one byte of a class, which a backslash may escape. Length 0: nothing follows it.
func classByte(p string) (byte, int) {
	if p[0] != '\\' {
		return p[0], 1
	}
	if len(p) == 1 {
		return 0, 0
	}
	return p[1], 2
}

func addRange(set *[4]uint64, low, high byte) {
	for c := int(low); c <= int(high); c++ {
		set[c>>6] |= 1 << (c & 63)
	}
}

// addPosix reads "[:name:]" at the start of p. n is its length, 0 if the first "]" does not end such a
// name. known is false if the name means nothing or there is no "]" at all.
func addPosix(set *[4]uint64, p string) (n int, known bool) {
	end := strings.IndexByte(p[2:], ']')
	if end < 0 {
		return 0, false
	}
	name, colon := strings.CutSuffix(p[2:2+end], ":")
	if !colon {
		return 0, true
	}
	test := posix(name)
	if test == nil {
		return 0, false
	}
	for c := byte(0); c < 128; c++ {
		if test(c) {
			addRange(set, c, c)
		}
	}
	return 2 + end + 1, true
}

// posix returns the ASCII members of a POSIX class. A vertical tab and a form feed are no space here: git
// has its own tables.
func posix(name string) func(c byte) bool {
	lower := func(c byte) bool { return 'a' <= c && c <= 'z' }
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	alnum := func(c byte) bool { return lower(c) || upper(c) || digit(c) }
	graph := func(c byte) bool { return '!' <= c && c <= '~' }
	switch name {
	case "alnum":
		return alnum
	case "alpha":
		return func(c byte) bool { return lower(c) || upper(c) }
	case "blank":
		return func(c byte) bool { return c == ' ' || c == '\t' }
	case "cntrl":
		return func(c byte) bool { return c < ' ' || c == 0x7f }
	case "digit":
		return digit
	case "graph":
		return graph
	case "lower":
		return lower
	case "print":
		return func(c byte) bool { return c == ' ' || graph(c) }
	case "punct":
		return func(c byte) bool { return graph(c) && !alnum(c) }
	case "space":
		return func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	case "upper":
		return upper
	case "xdigit":
		return func(c byte) bool { return digit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }
	}
	return nil
}
