package pattern

import (
	"regexp/syntax"
	"unicode/utf8"
)

// maxProgram bounds the instructions of a program, and so the memory and the time for each byte.
const maxProgram = 20_000

// A Program is a compiled pattern, shared by all workers.
type Program struct {
	code      code
	multiline bool      // the text is a whole file, not a line
	word      runeSet   // what \b and \B are about; nil: there are none
	first     [256]bool // bytes that a match can begin with
	need      needles   // one of them is in each match
	nullable  bool      // a match can be empty
}

// New compiles a pattern. Its errors are *Error.
func New(pattern string, fold, literal, multiline bool) (*Program, error) {
	p := &Program{multiline: multiline}
	var tree *syntax.Regexp
	var err error
	asciiWord := false
	if literal {
		tree, err = literalTree(pattern, fold, multiline)
	} else {
		tree, asciiWord, err = parseDialect(pattern, fold, multiline)
	}
	if err != nil {
		return nil, err
	}
	if size(tree) > maxProgram {
		return nil, &Error{0, "too large",
			"pattern that needs too many steps: make its counts or alternatives smaller"}
	}
	p.code = compile(tree)
	if p.code.conds&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
		p.word = perlClass('w', asciiWord)
	}
	p.first = firstBytes(&p.code)
	p.need, p.nullable = needlesOf(tree), nullable(tree)
	return p, nil
}

// Required returns strings one of which is in each text that matches; ASCII case may differ. nil: none are known.
func (p *Program) Required() [][]byte {
	var out [][]byte
	for _, n := range p.need.list {
		out = append(out, n.text)
	}
	return out
}

// literalTree is a pattern that is a text.
func literalTree(text string, fold, multiline bool) (*syntax.Regexp, error) {
	d := &dialect{src: text, multiline: multiline, flags: flags{fold: fold}}
	if len(text) > maxPattern {
		return nil, d.wrongAt(maxPattern, "too large", "text of %d bytes; at most %d are allowed", len(text),
			maxPattern)
	}
	if !utf8.ValidString(text) {
		return nil, d.wrong("syntax", "text is not valid UTF-8")
	}
	parts, wrong := d.quotationOf(text)
	if wrong != nil {
		return nil, wrong
	}
	return join(parts), nil
}

// size estimates the instructions of a tree, up to a little over maxProgram.
func size(re *syntax.Regexp) int {
	n := 1
	for _, sub := range re.Sub {
		n = min(n+size(sub), maxProgram+1)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpRepeat:
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxProgram+1)
}

// firstBytes finds the bytes that a match can begin with; all, if a match can be empty.
func firstBytes(c *code) (first [256]bool) {
	for b := utf8.RuneSelf; b < len(first); b++ {
		first[b] = true
	}
	seen := make([]bool, len(c.insts))
	todo := []uint32{c.start}
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch i := &c.insts[pc]; i.op {
		case opAlt:
			todo = append(todo, i.out, i.arg)
		case opEmpty:
			todo = append(todo, i.out)
		case opMatch:
			for b := range first {
				first[b] = true
			}
		case opRune:
			for _, block := range []rune{0, leafSize} {
				c.sets[i.set].within(block, func(at int) { first[int(block)+at] = true })
			}
		}
	}
	return first
}
