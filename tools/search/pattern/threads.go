package pattern

import (
	"regexp/syntax"
	"unicode/utf8"
)

// Runes that are none: a byte that is not UTF-8, and the end of the text.
const (
	broken rune = -1
	none   rune = -2
)

// pollSteps is after how many steps the threads look whether to stop. A step is a byte of one thread.
const pollSteps = 1 << 20

// Threads runs a program over a text of any bytes, in linear time: all ways to match go side by side, in the order in
// which a backtracking matcher would try them, so that the leftmost match with the first alternative wins. A byte that
// is not UTF-8 matches nothing. It belongs to one worker.
type threads struct {
	p         *Program
	alphabet  *alphabet
	stop      func() bool // polled in long texts; what is found then does not matter
	now, next queue
}

// A thread is one way to match: an instruction that waits for a rune, and where its match began.
type thread struct {
	pc    uint32
	start int
}

// A queue is a set of threads in order; at most one for each instruction.
type queue struct {
	place []uint32 // by instruction: its place in list, if it is there
	list  []thread
}

func (q *queue) has(pc uint32) bool {
	at := q.place[pc]
	return int(at) < len(q.list) && q.list[at].pc == pc
}

func (q *queue) push(t thread) {
	q.place[t.pc] = uint32(len(q.list))
	q.list = append(q.list, t)
}

func newThreads(p *Program, a *alphabet, stop func() bool) *threads {
	n := len(p.code.insts)
	return &threads{p: p, alphabet: a, stop: stop, now: queue{place: make([]uint32, n)},
		next: queue{place: make([]uint32, n)}}
}

// find returns the leftmost match that begins at from or later. With start it may stop once it knows where the match
// begins; its end then means nothing.
func (v *threads) find(text []byte, from int, start bool) (Span, bool) {
	v.now.list = v.now.list[:0]
	var match Span
	found := false
	prev := runeBefore(text, from)
	steps := 0
	for at := from; ; {
		if !found && len(v.now.list) == 0 {
			skip := at
			for skip < len(text) && !v.p.first[text[skip]] {
				skip++
			}
			if skip > at {
				at, prev = skip, runeBefore(text, skip)
			}
		}
		if steps += 1 + len(v.now.list); steps >= pollSteps {
			if steps = 0; v.stop() {
				return Span{}, false
			}
		}
		r, n := runeAt(text, at)
		cond := v.conditions(text, at, prev, r)
		if !found {
			v.add(&v.now, v.p.code.start, at, cond)
		}
		if len(v.now.list) == 0 && found {
			return match, true
		}
		follow, _ := runeAt(text, at+n)
		after := v.conditions(text, at+n, r, follow)
		v.next.list = v.next.list[:0]
		class := v.alphabet.of(r)
		for _, t := range v.now.list {
			i := &v.p.code.insts[t.pc]
			if i.op == opMatch {
				match, found = Span{t.start, at}, true
				break // the threads behind it lost
			}
			if i.op == opRune && v.alphabet.in(class, i.set) {
				v.add(&v.next, i.out, t.start, after)
			}
		}
		if r == none || start && found && (len(v.next.list) == 0 || v.next.list[0].start >= match.From) {
			return match, found
		}
		v.now, v.next = v.next, v.now
		at, prev = at+n, r
	}
}

// add puts the instructions that are reached from pc without a rune into a queue.
func (v *threads) add(q *queue, pc uint32, start int, cond syntax.EmptyOp) {
	if q.has(pc) {
		return
	}
	q.push(thread{pc, start})
	switch i := &v.p.code.insts[pc]; i.op {
	case opAlt:
		v.add(q, i.out, start, cond)
		v.add(q, i.arg, start, cond)
	case opEmpty:
		if i.cond&^cond == 0 {
			v.add(q, i.out, start, cond)
		}
	}
}

// conditions says which empty matches hold between two runes.
func (v *threads) conditions(text []byte, at int, prev, next rune) syntax.EmptyOp {
	var c syntax.EmptyOp
	if prev == none {
		c |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	// At the end of the text behind an LF no line begins: there is none.
	if prev == '\n' && at < len(text) {
		c |= syntax.EmptyBeginLine
	}
	if next == none {
		c |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	if next == '\n' {
		c |= syntax.EmptyEndLine
	}
	if v.p.word != nil {
		switch left, right := v.isWord(prev), v.isWord(next); {
		case left != right:
			c |= syntax.EmptyWordBoundary
		case prev != broken && next != broken:
			c |= syntax.EmptyNoWordBoundary
		}
	}
	return c
}

func (v *threads) isWord(r rune) bool { return r >= 0 && v.p.word.has(r) }

// runeAt returns the rune at a place and its length.
func runeAt(text []byte, at int) (rune, int) {
	if at >= len(text) {
		return none, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	r, n := utf8.DecodeRune(text[at:])
	if r == utf8.RuneError && n == 1 {
		return broken, 1
	}
	return r, n
}

func runeBefore(text []byte, at int) rune {
	if at == 0 {
		return none
	}
	r, n := utf8.DecodeLastRune(text[:at])
	if r == utf8.RuneError && n == 1 {
		return broken
	}
	return r
}
