package ignore

import "strings"

// maxSteps bounds one comparison. What needs more counts as no match: no pattern that a person wrote comes
// near it, and a file of ignore rules must not be able to stop a walk.
const maxSteps = 100_000

// The kinds of an atom.
const (
	literal byte = iota // one byte
	one                 // "?": any byte but "/"
	class               // "[…]": one byte, never "/"
	star                // "*": any number of bytes but "/"
	dirs                // "**/" as a component: nothing, or whatever ends in "/"
	all                 // "**" as a component, at the end or before an escaped "/": anything
)

// An atom is one step of a pattern.
type atom struct {
	kind byte
	char byte       // of a literal
	set  *[4]uint64 // of a class, by byte
}

// compile reads a pattern from its first special byte on. In patterns with a path, "**" is more than "*"
// where it is a whole component. It reports false for what can match nothing.
func compile(p string, path bool) ([]atom, bool) {
	var out []atom
	for i := 0; i < len(p); {
		switch p[i] {
		case '\\':
			if i+1 == len(p) {
				return nil, false
			}
			out = append(out, atom{kind: literal, char: p[i+1]})
			i += 2
		case '?':
			out = append(out, atom{kind: one})
			i++
		case '[':
			set, n := parseClass(p[i:])
			if n == 0 {
				return nil, false
			}
			out = append(out, atom{kind: class, set: set})
			i += n
		case '*':
			a, n := stars(p, i, path)
			out = append(out, a)
			i += n
		default:
			out = append(out, atom{kind: literal, char: p[i]})
			i++
		}
	}
	return out, true
}

// stars reads the run of stars at p[i:] and returns its length with the atom. p begins behind the literal
// head, and git takes that place for the start of a component.
func stars(p string, i int, path bool) (atom, int) {
	end := i
	for end < len(p) && p[end] == '*' {
		end++
	}
	if !path || end-i < 2 || i > 0 && p[i-1] != '/' {
		return atom{kind: star}, end - i
	}
	switch {
	case end == len(p) || strings.HasPrefix(p[end:], `\/`):
		return atom{kind: all}, end - i
	case p[end] == '/':
		return atom{kind: dirs}, end - i + 1
	}
	return atom{kind: star}, end - i
}

// wild compares a whole text with a pattern.
//
// On a mismatch only the last "*" of the same component and the last "**" need to be widened, never an
// earlier one: what stands between two of them has a fixed number of components, so that its first
// place leaves the most to the rest. The work is therefore at most quadratic, and bounded besides.
func wild(p []atom, text string) bool {
	var narrow, wide retry // of the last "*" and the last "**"
	i, t := 0, 0
	for range maxSteps {
		if i == len(p) && t == len(text) {
			return true
		}
		if i < len(p) {
			switch p[i].kind {
			case star:
				if i+1 == len(p) && strings.IndexByte(text[t:], '/') < 0 {
					return true
				}
				narrow = retry{i + 1, t, true}
				i++
				continue
			case all, dirs:
				if i+1 == len(p) && p[i].kind == all {
					return true
				}
				wide, narrow = retry{i + 1, t, true}, retry{}
				i++
				continue
			}
			if t < len(text) && p[i].takes(text[t]) {
				i++
				t++
				continue
			}
		}
		switch {
		case narrow.set && narrow.text < len(text) && text[narrow.text] != '/':
			narrow.text++
			i, t = narrow.atom, narrow.text
		case wide.set && wide.widen(p[wide.atom-1].kind, text):
			narrow = retry{}
			i, t = wide.atom, wide.text
		default:
			return false
		}
	}
	return false
}

// A retry is where to go on when a comparison fails: behind the star, with the text that is left to it.
type retry struct {
	atom, text int
	set        bool
}

// widen gives the next possible place behind a "**", or reports that there is none.
func (r *retry) widen(kind byte, text string) bool {
	if kind == all {
		r.text++
		return r.text <= len(text)
	}
	n := strings.IndexByte(text[r.text:], '/')
	r.text += n + 1
	return n >= 0
}

// takes reports whether an atom that stands for one byte stands for c.
func (a *atom) takes(c byte) bool {
	switch a.kind {
	case literal:
		return a.char == c
	case one:
		return c != '/'
	default:
		return c != '/' && a.set[c>>6]>>(c&63)&1 == 1
	}
}
