package pattern

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

const (
	maxPattern = 10_000 // bytes of a pattern
	maxRepeat  = 1_000  // a count, also as the product of nested ones
	maxNesting = 250    // of groups and classes
)

// A dialect reads a pattern of ripgrep's syntax into the tree of regexp/syntax. Classes are resolved to sets of runes
// here, because set operations and Unicode classes cannot be left to Go's parser. Groups do not capture.
//
// In line mode each line is a text of its own: "^" and "$" are its ends. In multiline mode they are the ends
// of lines, and "." takes LF, too. In both "$" and \z also match before a CR that ends the line.
type dialect struct {
	src       string
	pos       int
	depth     int
	multiline bool
	asciiWord bool // \b is about ASCII, because (?-u) stands at the start
	flags     flags
	counts    map[*syntax.Regexp]int // offsets of the counts, for errors
	sets      map[setKey]runeSet
}

// flags are the settings that hold at a place.
type flags struct{ fold, dotAll, swap, blanks, ascii bool }

// parseDialect reads a pattern. Its errors are *Error.
func parseDialect(pattern string, fold, multiline bool) (re *syntax.Regexp, asciiWord bool, err error) {
	if len(pattern) > maxPattern {
		return nil, false,
			&Error{maxPattern, "too large", fmt.Sprintf("pattern of %d bytes; at most %d are allowed",
				len(pattern), maxPattern)}
	}
	if !utf8.ValidString(pattern) {
		return nil, false, &Error{0, "syntax", "pattern is not valid UTF-8"}
	}
	d := &dialect{src: pattern, multiline: multiline, flags: flags{fold: fold, dotAll: multiline},
		counts: map[*syntax.Regexp]int{}, sets: map[setKey]runeSet{}}
	re, perr := d.alternation()
	if perr == nil && d.pos < len(d.src) {
		perr = d.wrong("syntax", "unopened )")
	}
	if perr == nil {
		perr = d.checkCounts(re, 1)
	}
	if perr != nil {
		return nil, false, perr
	}
	return re, d.asciiWord, nil
}

// wrong makes an error about the place in hand.
func (d *dialect) wrong(kind, format string, args ...any) *Error {
	return d.wrongAt(d.pos, kind, format, args...)
}

func (d *dialect) wrongAt(pos int, kind, format string, args ...any) *Error {
	return &Error{pos, kind, fmt.Sprintf(format, args...)}
}

func (d *dialect) more() bool { return d.pos < len(d.src) }

func (d *dialect) looking(at string) bool { return strings.HasPrefix(d.src[d.pos:], at) }

// eat goes on behind a text if it stands here.
func (d *dialect) eat(text string) bool {
	if !d.looking(text) {
		return false
	}
	d.pos += len(text)
	return true
}

func (d *dialect) rune() rune {
	r, n := utf8.DecodeRuneInString(d.src[d.pos:])
	d.pos += n
	return r
}

// alternation reads up to a ")" or the end. Flags that are set inside hold up to there.
func (d *dialect) alternation() (*syntax.Regexp, *Error) {
	if d.depth++; d.depth > maxNesting {
		return nil, d.wrong("too large", "groups nested more than %d deep", maxNesting)
	}
	outer := d.flags
	defer func() { d.flags = outer; d.depth-- }()
	var branches []*syntax.Regexp
	for {
		re, err := d.concatenation()
		if err != nil {
			return nil, err
		}
		branches = append(branches, re)
		if !d.eat("|") {
			break
		}
	}
	if len(branches) == 1 {
		return branches[0], nil
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: branches}, nil
}

// concatenation reads up to "|", ")" or the end.
func (d *dialect) concatenation() (*syntax.Regexp, *Error) {
	var parts []*syntax.Regexp
	for d.skipBlanks(); d.more() && !d.looking("|") && !d.looking(")"); d.skipBlanks() {
		re, err := d.repeat(parts)
		if err != nil {
			return nil, err
		}
		if re != nil {
			parts[len(parts)-1] = re
			continue
		}
		if d.eat(`\Q`) {
			quoted, err := d.quotation()
			if err != nil {
				return nil, err
			}
			parts = append(parts, quoted...)
			continue
		}
		if re, err = d.atom(); err != nil {
			return nil, err
		}
		if re != nil {
			parts = append(parts, re)
		}
	}
	return join(parts), nil
}

// join makes one node of parts; neighbouring literals become one.
func join(parts []*syntax.Regexp) *syntax.Regexp {
	var out []*syntax.Regexp
	for _, re := range parts {
		if n := len(out); n > 0 && re.Op == syntax.OpLiteral && out[n-1].Op == syntax.OpLiteral &&
			re.Flags == out[n-1].Flags {
			out[n-1].Rune = append(out[n-1].Rune, re.Rune...)
			continue
		}
		out = append(out, re)
	}
	switch len(out) {
	case 0:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case 1:
		return out[0]
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: out}
}

// skipBlanks drops blanks and comments where (?x) holds.
func (d *dialect) skipBlanks() {
	for d.flags.blanks && d.more() {
		switch {
		case strings.ContainsRune(" \t\n\v\f\r", rune(d.src[d.pos])):
			d.pos++
		case d.src[d.pos] == '#':
			end := strings.IndexByte(d.src[d.pos:], '\n')
			if end < 0 {
				end = len(d.src) - d.pos
			}
			d.pos += end
		default:
			return
		}
	}
}

// atom reads one thing that can be repeated. nil: flags were set.
func (d *dialect) atom() (*syntax.Regexp, *Error) {
	switch d.src[d.pos] {
	case '(':
		return d.group()
	case '[':
		set, err := d.class()
		return d.set(set), err
	case '\\':
		return d.escape()
	case '.':
		d.pos++
		if d.flags.dotAll {
			return &syntax.Regexp{Op: syntax.OpAnyChar}, nil
		}
		return &syntax.Regexp{Op: syntax.OpAnyCharNotNL}, nil
	case '^':
		d.pos++
		return d.begin(d.multiline), nil
	case '$':
		d.pos++
		return d.end(d.multiline), nil
	}
	at := d.pos
	return d.literal(at, d.rune())
}

func (d *dialect) begin(line bool) *syntax.Regexp {
	if line {
		return &syntax.Regexp{Op: syntax.OpBeginLine}
	}
	return &syntax.Regexp{Op: syntax.OpBeginText}
}

// end is "$" or \z: the end, or before a CR there.
func (d *dialect) end(line bool) *syntax.Regexp {
	op := syntax.OpEndText
	if line {
		op = syntax.OpEndLine
	}
	cr := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{{Op: syntax.OpQuest, Sub: []*syntax.Regexp{cr}},
		{Op: op}}}
}

// literal is one rune that was written at a place.
func (d *dialect) literal(at int, r rune) (*syntax.Regexp, *Error) {
	if r == '\n' && !d.multiline {
		return nil, d.wrongAt(at, "newline", "a line never contains a newline: use multiline")
	}
	re := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{r}}
	if d.flags.fold {
		re.Flags = syntax.FoldCase
	}
	return re, nil
}

// set is one rune of a set.
func (d *dialect) set(s runeSet) *syntax.Regexp {
	if !d.multiline && s.has('\n') {
		s = s.minus(runeSet{'\n', '\n'})
	}
	if len(s) == 0 {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	return &syntax.Regexp{Op: syntax.OpCharClass, Rune: s}
}
