package pattern

import (
	"regexp/syntax"
	"unicode"
)

// An opcode says what an instruction does.
type opcode uint8

const (
	opFail  opcode = iota // matches nothing
	opAlt                 // goes on at out and at arg; out comes first
	opRune                // takes one rune of a set
	opEmpty               // goes on if a condition holds between two runes
	opMatch               // the match is complete
)

// An inst is one instruction. It is small, since a pattern may have 20,000 of them and must still compile at once.
type inst struct {
	op       opcode
	cond     syntax.EmptyOp // of opEmpty
	set      int32          // of opRune: its place in code.sets
	out, arg uint32
}

// code is a pattern as instructions. It is read-only once made.
type code struct {
	insts []inst
	start uint32
	sets  []runeSet
	conds syntax.EmptyOp // all that occur
}

// A compiler makes code from the last instruction to the first: each part is told where to go on.
type compiler struct {
	code
	classes map[*rune]int32   // by the first element; sets are never changed
	runes   map[runeKey]int32 // of literals
}

type runeKey struct {
	r    rune
	fold bool
}

// compile makes the code of a tree.
func compile(re *syntax.Regexp) code {
	c := &compiler{code: code{insts: make([]inst, 0, size(re)+1)}, classes: map[*rune]int32{},
		runes: map[runeKey]int32{}}
	end := c.emit(inst{op: opMatch})
	c.start = c.part(re, end)
	return c.code
}

func (c *compiler) emit(i inst) uint32 {
	c.insts = append(c.insts, i)
	return uint32(len(c.insts) - 1)
}

// part compiles a tree that goes on at next, and returns where it begins.
func (c *compiler) part(re *syntax.Regexp, next uint32) uint32 {
	lazy := re.Flags&syntax.NonGreedy != 0
	switch re.Op {
	case syntax.OpEmptyMatch:
		return next
	case syntax.OpLiteral:
		fold := re.Flags&syntax.FoldCase != 0
		for i := len(re.Rune) - 1; i >= 0; i-- {
			next = c.emit(inst{op: opRune, set: c.literal(re.Rune[i], fold), out: next})
		}
		return next
	case syntax.OpCharClass:
		return c.emit(inst{op: opRune, set: c.class(re.Rune), out: next})
	case syntax.OpAnyChar:
		return c.emit(inst{op: opRune, set: c.class(anyRune), out: next})
	case syntax.OpAnyCharNotNL:
		return c.emit(inst{op: opRune, set: c.class(anyButLF), out: next})
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		cond := conditionOf[re.Op]
		c.conds |= cond
		return c.emit(inst{op: opEmpty, cond: cond, out: next})
	case syntax.OpConcat:
		for i := len(re.Sub) - 1; i >= 0; i-- {
			next = c.part(re.Sub[i], next)
		}
		return next
	case syntax.OpAlternate:
		at := c.part(re.Sub[len(re.Sub)-1], next)
		for i := len(re.Sub) - 2; i >= 0; i-- {
			at = c.alt(c.part(re.Sub[i], next), at, false)
		}
		return at
	case syntax.OpQuest:
		return c.alt(c.part(re.Sub[0], next), next, lazy)
	case syntax.OpPlus:
		return c.plus(re.Sub[0], next, lazy)
	case syntax.OpStar:
		return c.star(re.Sub[0], next, lazy)
	case syntax.OpRepeat:
		return c.repeat(re, next, lazy)
	}
	return c.emit(inst{op: opFail})
}

// conditionOf is the condition of an empty match.
var conditionOf = map[syntax.Op]syntax.EmptyOp{
	syntax.OpBeginLine: syntax.EmptyBeginLine, syntax.OpEndLine: syntax.EmptyEndLine,
	syntax.OpBeginText: syntax.EmptyBeginText, syntax.OpEndText: syntax.EmptyEndText,
	syntax.OpWordBoundary: syntax.EmptyWordBoundary, syntax.OpNoWordBoundary: syntax.EmptyNoWordBoundary,
}

// alt goes on at body or at next; body is preferred unless lazy.
func (c *compiler) alt(body, next uint32, lazy bool) uint32 {
	if lazy {
		body, next = next, body
	}
	return c.emit(inst{op: opAlt, out: body, arg: next})
}

// loop compiles a body that comes back to an opAlt, and returns both.
func (c *compiler) loop(sub *syntax.Regexp, next uint32, lazy bool) (body, alt uint32) {
	alt = c.alt(0, next, lazy)
	body = c.part(sub, alt)
	if lazy {
		c.insts[alt].arg = body
	} else {
		c.insts[alt].out = body
	}
	return body, alt
}

func (c *compiler) plus(sub *syntax.Regexp, next uint32, lazy bool) uint32 {
	body, _ := c.loop(sub, next, lazy)
	return body
}

// star is x*. Where x can be empty it is (x+)?, or the order of what is tried would be wrong.
func (c *compiler) star(sub *syntax.Regexp, next uint32, lazy bool) uint32 {
	if nullable(sub) {
		return c.alt(c.plus(sub, next, lazy), next, lazy)
	}
	_, alt := c.loop(sub, next, lazy)
	return alt
}

// repeat is x{n,m}: n times x, then up to m-n further ones, each inside the one before.
func (c *compiler) repeat(re *syntax.Regexp, next uint32, lazy bool) uint32 {
	sub, once := re.Sub[0], re.Min
	switch {
	case re.Max < 0 && re.Min == 0:
		return c.star(sub, next, lazy)
	case re.Max < 0:
		next = c.plus(sub, next, lazy)
		once--
	default:
		end := next
		for range re.Max - re.Min {
			next = c.alt(c.part(sub, next), end, lazy)
		}
	}
	for range once {
		next = c.part(sub, next)
	}
	return next
}

// nullable says whether a tree can match without taking a rune.
func nullable(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !nullable(sub) {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if nullable(sub) {
				return true
			}
		}
		return false
	case syntax.OpPlus:
		return nullable(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || nullable(re.Sub[0])
	}
	return true
}

func (c *compiler) class(s runeSet) int32 {
	if len(s) == 0 {
		return c.addSet(s)
	}
	id, ok := c.classes[&s[0]]
	if !ok {
		id = c.addSet(s)
		c.classes[&s[0]] = id
	}
	return id
}

func (c *compiler) literal(r rune, fold bool) int32 {
	key := runeKey{r, fold}
	id, ok := c.runes[key]
	if !ok {
		s := runeSet{r, r}
		if fold {
			pairs := []rune{r, r}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				pairs = append(pairs, f, f)
			}
			s = newRuneSet(pairs...)
		}
		id = c.addSet(s)
		c.runes[key] = id
	}
	return id
}

func (c *compiler) addSet(s runeSet) int32 {
	c.sets = append(c.sets, s)
	return int32(len(c.sets) - 1)
}
