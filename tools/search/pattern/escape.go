package pattern

import (
	"regexp/syntax"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// escape reads what begins with "\" outside a class.
func (d *dialect) escape() (*syntax.Regexp, *Error) {
	start := d.pos
	if d.pos+1 == len(d.src) {
		return nil, d.wrong("syntax", "backslash at the end")
	}
	c := d.src[d.pos+1]
	if s, err := d.escapedSet(); s != nil || err != nil {
		return d.set(s), err
	}
	d.pos += 2
	switch c {
	case 'A':
		return d.begin(false), nil
	case 'z':
		return d.end(false), nil
	case 'b', 'B':
		if d.looking("{") {
			if _, _, n := count(d.src[d.pos:]); n == 0 {
				return nil, d.wrongAt(start, "word-edge", `\%c{…} is not supported: use \b`, c)
			}
		}
		if c == 'b' {
			return &syntax.Regexp{Op: syntax.OpWordBoundary}, nil
		}
		return &syntax.Regexp{Op: syntax.OpNoWordBoundary}, nil
	case '<', '>':
		return nil, d.wrongAt(start, "word-edge", `\%c is not supported: use \b`, c)
	case 'k', 'g':
		return nil, d.wrongAt(start, "back-reference", "back-references are not supported")
	}
	d.pos = start
	r, err := d.escapedRune()
	if err != nil {
		return nil, err
	}
	return d.literal(start, r)
}

// quotation reads the text up to \E or the end: one literal a rune, so that an operator behind it repeats the last
// only.
func (d *dialect) quotation() ([]*syntax.Regexp, *Error) {
	text, _, _ := strings.Cut(d.src[d.pos:], `\E`)
	parts, err := d.quotationOf(text)
	d.pos += len(text)
	d.eat(`\E`)
	return parts, err
}

// quotationOf makes literals of a text that stands at the place in hand.
func (d *dialect) quotationOf(text string) ([]*syntax.Regexp, *Error) {
	var parts []*syntax.Regexp
	for i, r := range text {
		re, err := d.literal(d.pos+i, r)
		if err != nil {
			return nil, err
		}
		parts = append(parts, re)
	}
	return parts, nil
}

// escapedSet reads \d \s \w \p and their opposites. Not one of them: nil, nothing read. Each is made once for a
// pattern.
func (d *dialect) escapedSet() (runeSet, *Error) {
	start := d.pos
	c := d.src[d.pos+1]
	if strings.IndexByte("dDsSwWpP", c) < 0 {
		return nil, nil
	}
	d.pos += 2
	name := ""
	if c|0x20 == 'p' {
		var err *Error
		if name, err = d.propertyName(start); err != nil {
			return nil, err
		}
	}
	key := setKey{d.src[start:d.pos], d.flags.fold, d.flags.ascii, d.multiline}
	if s, ok := d.sets[key]; ok {
		return s, nil
	}
	if s, ok := madeSets.load(key); ok {
		d.sets[key] = s
		return s, nil
	}
	var s runeSet
	if c|0x20 == 'p' {
		bare := strings.TrimPrefix(name, "^")
		var known bool
		if s, known = propertyClass(bare); !known {
			return nil, d.wrongAt(start, "class", "unknown class %q", bare)
		}
		if d.flags.fold {
			s = s.fold()
		}
		if len(bare) < len(name) {
			s = s.negate()
		}
	} else {
		s = perlClass(c|0x20, d.flags.ascii)
	}
	if unicode.IsUpper(rune(c)) {
		s = s.negate()
	}
	if !d.multiline {
		s = s.minus(runeSet{'\n', '\n'})
	}
	d.sets[key] = s
	madeSets.store(key, s)
	return s, nil
}

// A setKey is all that an escaped set depends on.
type setKey struct {
	text                   string
	fold, ascii, multiline bool
}

// maxMade is how many escaped sets a process keeps for its next patterns: the spellings of one are many.
const maxMade = 256

// madeSets are the escaped sets of earlier patterns.
var madeSets setCache

// A setCache keeps sets up to its bound. It is safe for concurrent use.
type setCache struct {
	mu   sync.Mutex
	sets map[setKey]runeSet
}

func (c *setCache) load(key setKey) (runeSet, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sets[key]
	return s, ok
}

func (c *setCache) store(key setKey, s runeSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sets == nil {
		c.sets = map[setKey]runeSet{}
	}
	if len(c.sets) < maxMade {
		key.text = strings.Clone(key.text) // not the whole pattern
		c.sets[key] = s
	}
}

// propertyName reads "{name}" or one letter.
func (d *dialect) propertyName(start int) (string, *Error) {
	if !d.more() {
		return "", d.wrongAt(start, "syntax", "class without a name")
	}
	if !d.eat("{") {
		return string(d.rune()), nil
	}
	name, _, closed := strings.Cut(d.src[d.pos:], "}")
	if !closed || name == "" {
		return "", d.wrongAt(start, "syntax", "class name that is not closed or empty")
	}
	d.pos += len(name) + 1
	return name, nil
}

// escapedRune reads an escape that stands for one rune, inside and outside classes.
func (d *dialect) escapedRune() (rune, *Error) {
	start := d.pos
	d.pos++
	if !d.more() {
		return 0, d.wrongAt(start, "syntax", "backslash at the end")
	}
	c := d.rune()
	switch c {
	case 'a':
		return '\a', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'v':
		return '\v', nil
	case 'x':
		return d.hex(start, 2)
	case 'u':
		return d.hex(start, 4)
	case 'U':
		return d.hex(start, 8)
	}
	switch {
	case '0' <= c && c <= '9':
		return d.octal(start)
	case c < utf8.RuneSelf && !unicode.IsLetter(c):
		return c, nil
	}
	return 0, d.wrongAt(start, "syntax", "unknown escape \\%c", c)
}

// hex reads {…} or a number of digits.
func (d *dialect) hex(start, digits int) (rune, *Error) {
	text := d.src[d.pos:]
	if d.eat("{") {
		inner, _, closed := strings.Cut(text[1:], "}")
		if !closed {
			return 0, d.wrongAt(start, "syntax", "escape that is not closed")
		}
		text = inner
		d.pos += len(inner) + 1
	} else {
		text = text[:min(digits, len(text))]
		d.pos += len(text)
		if len(text) < digits {
			return 0, d.wrongAt(start, "syntax", "escape that needs %d hexadecimal digits", digits)
		}
	}
	r := rune(0)
	for _, c := range text {
		v := strings.IndexRune("0123456789abcdef", unicode.ToLower(c))
		if v < 0 || r > unicode.MaxRune>>4 {
			return 0, d.wrongAt(start, "syntax", "escape that is no hexadecimal rune")
		}
		r = r<<4 | rune(v)
	}
	if text == "" || !utf8.ValidRune(r) {
		return 0, d.wrongAt(start, "syntax", "escape that is no rune")
	}
	return r, nil
}

// octal reads \0, \012, \12. A digit alone is a reference to a group.
func (d *dialect) octal(start int) (rune, *Error) {
	end := start + 1
	r := rune(0)
	for end < len(d.src) && end < start+4 && '0' <= d.src[end] && d.src[end] <= '7' {
		r = r<<3 | rune(d.src[end]-'0')
		end++
	}
	if d.src[start+1] != '0' && end < start+3 {
		return 0, d.wrongAt(start, "back-reference", "back-references are not supported")
	}
	d.pos = end
	return r, nil
}
