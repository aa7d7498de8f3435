package pattern

import "strings"

// class reads what begins with "[": ranges, escapes, POSIX names, nested classes, and the operators && -- ~~, which
// bind weaker than standing side by side and are read from the left.
func (d *dialect) class() (runeSet, *Error) {
	start := d.pos
	if d.depth++; d.depth > maxNesting {
		return nil, d.wrong("too large", "classes nested more than %d deep", maxNesting)
	}
	defer func() { d.depth-- }()
	d.pos++
	negated := d.eat("^")
	whole, err := d.operand(start, true)
	for err == nil && !d.eat("]") {
		op := d.src[d.pos : d.pos+2]
		d.pos += 2
		var right runeSet
		right, err = d.operand(start, false)
		switch op {
		case "&&":
			whole = whole.intersect(right)
		case "--":
			whole = whole.minus(right)
		case "~~":
			whole = whole.either(right)
		}
	}
	if err != nil {
		return nil, err
	}
	if negated {
		whole = whole.negate()
	}
	return whole, nil
}

// operand reads items up to "]" or an operator. At the start of a class "]" and "-" are literal.
func (d *dialect) operand(start int, first bool) (runeSet, *Error) {
	var loose []rune // ranges, still to be folded
	var whole runeSet
	seen := map[*rune]bool{} // sets that are in whole
	for {
		if !d.more() {
			return nil, d.wrongAt(start, "syntax", "unclosed class")
		}
		if !first && (d.looking("]") || d.looking("&&") || d.looking("--") || d.looking("~~")) {
			break
		}
		if first && d.eat("-") {
			loose = append(loose, '-', '-')
			first = d.looking("-")
			continue
		}
		first = false
		s, folded, err := d.item(start)
		switch {
		case err != nil:
			return nil, err
		case !folded:
			loose = append(loose, s...)
		case len(s) > 0 && !seen[&s[0]]:
			seen[&s[0]] = true
			whole = whole.union(s)
		}
	}
	s := newRuneSet(loose...)
	if d.flags.fold {
		s = s.fold()
	}
	return whole.union(s), nil
}

// item reads one thing of a class. folded: case has been seen to.
func (d *dialect) item(start int) (s runeSet, folded bool, err *Error) {
	if d.looking("[") {
		if s, n, err := d.posix(); n > 0 || err != nil {
			return s, false, err
		}
		s, err = d.class()
		return s, true, err
	}
	if d.looking(`\`) && d.pos+1 < len(d.src) {
		if s, err := d.escapedSet(); s != nil || err != nil {
			return s, true, err
		}
	}
	s, err = d.classRange(start)
	return s, false, err
}

// classRange reads a rune, or two with "-" between them.
func (d *dialect) classRange(start int) (runeSet, *Error) {
	low, err := d.classRune(start)
	if err != nil {
		return nil, err
	}
	if !d.looking("-") || d.looking("-]") || d.looking("--") {
		return runeSet{low, low}, nil
	}
	at := d.pos
	d.pos++
	high, err := d.classRune(start)
	if err != nil {
		return nil, err
	}
	if high < low {
		return nil, d.wrongAt(at, "syntax", "class range that ends before it begins")
	}
	return runeSet{low, high}, nil
}

func (d *dialect) classRune(start int) (rune, *Error) {
	switch {
	case !d.more():
		return 0, d.wrongAt(start, "syntax", "unclosed class")
	case d.looking(`\`):
		return d.escapedRune()
	}
	return d.rune(), nil
}

// posix reads [:name:] or [:^name:]. Length 0: something else stands here.
func (d *dialect) posix() (runeSet, int, *Error) {
	text, _, closed := strings.Cut(d.src[d.pos:], ":]")
	name, colon := strings.CutPrefix(text, "[:")
	if !closed || !colon || strings.ContainsAny(name, "[]") {
		return nil, 0, nil
	}
	name, negated := strings.CutPrefix(name, "^")
	s, known := posixClass(name)
	if !known {
		return nil, 0, d.wrong("class", "unknown class %q", name)
	}
	if negated {
		s = s.negate()
	}
	n := len(text) + len(":]")
	d.pos += n
	return s, n, nil
}
