package bash

import "strings"

// sedFault reads a script of sed; "": it only prints. The grammar is a small part of what sed reads, in which GNU and
// BSD agree: addresses, and the commands p, P, d, D, q, = and s without its flags e and w.
func sedFault(w word) string {
	if w.glob() {
		return "glob " + snippet(w.text) + " as the script"
	}
	s := skipBlanks(w.text)
	if s == "" {
		return "there is no script"
	}
	for s != "" {
		rest, ok := sedCommand(s)
		if !ok {
			return "script " + snippet(w.text) + ": not on the list from " + snippet(s)
		}
		s = rest
	}
	return ""
}

// sedCommand reads one command and the `;` behind it.
func sedCommand(s string) (rest string, ok bool) {
	s, addressed, ok := sedAddress(s)
	if ok && addressed && strings.HasPrefix(s, ",") {
		s, addressed, ok = sedAddress(skipBlanks(s[1:]))
		ok = ok && addressed
	}
	if s = skipBlanks(s); ok && strings.HasPrefix(s, "!") {
		s = skipBlanks(s[1:])
	}
	if !ok || s == "" {
		return "", false
	}
	c := s[0]
	s = s[1:]
	switch {
	case c == 's':
		if s, ok = sedSubstitute(s); !ok {
			return "", false
		}
	case strings.IndexByte("pPdDq=", c) < 0:
		return "", false
	}
	if s = skipBlanks(s); s == "" {
		return "", true
	}
	if s[0] != ';' {
		return "", false
	}
	return skipBlanks(s[1:]), true
}

// sedAddress reads a number, `$`, `N~M` or `/regex/`, if one stands there.
func sedAddress(s string) (rest string, found, ok bool) {
	switch {
	case s == "":
		return s, false, true
	case s[0] == '$':
		return s[1:], true, true
	case s[0] == '/':
		rest, ok = sedRegex(s[1:], '/')
		return rest, true, ok
	case !isDigit(s[0]):
		return s, false, true
	}
	s = strings.TrimLeft(s, "0123456789")
	if step, ok := strings.CutPrefix(s, "~"); ok {
		rest := strings.TrimLeft(step, "0123456789")
		return rest, true, len(rest) < len(step)
	}
	return s, true, true
}

// sedSubstitute reads what follows the s.
func sedSubstitute(s string) (rest string, ok bool) {
	if s == "" || strings.IndexByte("/|,#:@!", s[0]) < 0 {
		return "", false
	}
	delimiter := s[0]
	if s, ok = sedRegex(s[1:], delimiter); !ok {
		return "", false
	}
	i := unescaped(s, delimiter)
	if i < 0 || strings.Contains(s[:i], "\n") {
		return "", false
	}
	return strings.TrimLeft(s[i+1:], "gpiImM0123456789"), true
}

// sedRegex reads up to the delimiter. A regex that has the delimiter in a bracket expression, or a bracket expression
// without an end, is refused: GNU sed ends it there, BSD sed behind it, so that what follows may hide a flag.
func sedRegex(s string, delimiter byte) (rest string, ok bool) {
	end := unescaped(s, delimiter)
	if end < 0 || strings.Contains(s[:end], "\n") {
		return "", false
	}
	for i := 0; i < end; i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			n := bracket(s[i+1 : end])
			if n < 0 || strings.IndexByte(s[i+1:i+1+n], delimiter) >= 0 {
				return "", false
			}
			i += n
		}
	}
	return s[end+1:], true
}

// bracket returns how long a bracket expression is from behind its `[`, with its `]`; -1: it has no end.
func bracket(s string) int {
	i := 0
	if strings.HasPrefix(s, "^") {
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		i++
	}
	for i < len(s) {
		switch {
		case s[i] == ']':
			return i + 1
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":.=", s[i+1]) >= 0:
			n := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if n < 0 {
				return -1
			}
			i += n + 4
		default:
			i++
		}
	}
	return -1
}

// unescaped finds c where no backslash stands before it; -1: nowhere.
func unescaped(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case c:
			return i
		}
	}
	return -1
}

func skipBlanks(s string) string { return strings.TrimLeft(s, " \t") }
