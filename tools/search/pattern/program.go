package pattern

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxProgram bounds the instructions of a program, and so the memory and the time for each byte.
const maxProgram = 20_000

// A Program is a compiled pattern, shared by all workers.
//
// Go's regexp knows neither Unicode's \b nor bytes that match nothing, so it only decides about ASCII text, where it
// agrees with ripgrep and is fast. All other text goes through the simulation in threads.go, over the same tree.
type Program struct {
	prog      *syntax.Prog
	edges     bool           // there is a \b or \B
	asciiWord bool           // which are about ASCII
	multiline bool           // the text is a whole file, not a line
	word      runeSet        // what \b is about
	first     [256]bool      // bytes that a match can begin with
	ascii     *regexp.Regexp // for ASCII texts; nil: use threads
	never     bool           // no ASCII text matches
	need      needles        // one of them is in each match
}

// New compiles a pattern. Its errors are *Error.
func New(pattern string, fold, literal, multiline bool) (*Program, error) {
	p := &Program{multiline: multiline}
	var tree *syntax.Regexp
	var err error
	if literal {
		tree, err = literalTree(pattern, fold, multiline)
	} else {
		tree, p.asciiWord, err = parseDialect(pattern, fold, multiline)
	}
	if err != nil {
		return nil, err
	}
	if size(tree) > maxProgram {
		return nil, &Error{0, "too large",
			"pattern that needs too many steps: make its counts or alternatives smaller"}
	}
	if p.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, &Error{0, "syntax", err.Error()}
	}
	p.edges = slices.ContainsFunc(p.prog.Inst, func(i syntax.Inst) bool {
		return i.Op == syntax.InstEmptyWidth &&
			syntax.EmptyOp(i.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
	})
	if p.edges {
		p.word = perlClass('w', p.asciiWord)
	}
	p.first = firstBytes(p.prog)
	p.need = needlesOf(tree)
	plain := asciiOnly(tree)
	p.never = plain.Op == syntax.OpNoMatch
	if !multiline && !p.never {
		// A tree that Go refuses as text, because it is nested too deep, is left to the threads.
		p.ascii, _ = regexp.Compile(plain.String())
	}
	return p, nil
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

// asciiOnly returns the tree as it acts on ASCII texts: classes and literals lose what cannot occur.
func asciiOnly(re *syntax.Regexp) *syntax.Regexp {
	out := *re
	switch re.Op {
	case syntax.OpCharClass:
		out.Rune = runeSet(re.Rune).intersect(runeSet{0, unicode.MaxASCII})
		if len(out.Rune) == 0 {
			return &syntax.Regexp{Op: syntax.OpNoMatch}
		}
	case syntax.OpLiteral:
		out.Rune = slices.Clone(re.Rune)
		for i, r := range out.Rune {
			if out.Rune[i] = asciiTwin(r, re.Flags&syntax.FoldCase != 0); out.Rune[i] < 0 {
				return &syntax.Regexp{Op: syntax.OpNoMatch}
			}
		}
	}
	out.Sub = nil
	for _, sub := range re.Sub {
		s := asciiOnly(sub)
		if s.Op == syntax.OpNoMatch && (re.Op == syntax.OpConcat || re.Op == syntax.OpPlus ||
			re.Op == syntax.OpRepeat && re.Min > 0) {
			return s
		}
		if s.Op != syntax.OpNoMatch || re.Op != syntax.OpAlternate {
			out.Sub = append(out.Sub, s)
		}
	}
	if re.Op == syntax.OpAlternate && len(out.Sub) == 0 {
		return &syntax.Regexp{Op: syntax.OpNoMatch}
	}
	return &out
}

// asciiTwin returns r, or the ASCII rune that differs from it in case only, or -1.
func asciiTwin(r rune, fold bool) rune {
	if r <= unicode.MaxASCII {
		return r
	}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if f <= unicode.MaxASCII {
				return f
			}
		}
	}
	return -1
}

// firstBytes finds the bytes that a match can begin with; all, if a match can be empty.
func firstBytes(prog *syntax.Prog) (first [256]bool) {
	for b := utf8.RuneSelf; b < len(first); b++ {
		first[b] = true
	}
	seen := make([]bool, len(prog.Inst))
	todo := []uint32{uint32(prog.Start)}
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch i := &prog.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, i.Out, i.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			todo = append(todo, i.Out)
		case syntax.InstMatch:
			for b := range first {
				first[b] = true
			}
		case syntax.InstFail:
		default:
			for b := range utf8.RuneSelf {
				first[b] = first[b] || i.MatchRune(rune(b))
			}
		}
	}
	return first
}
