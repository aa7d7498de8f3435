package pattern

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// Entries of a table of states that lead to no state.
const (
	unknown uint32 = 1<<31 + iota // was never needed so far
	matched                       // a match shows
	special uint32 = 1 << 31
)

const (
	rowSize  = 256
	rowShift = 8
	// maxTable bounds what one worker keeps of an automaton, in bytes. Sixteen workers stay below 64 MiB.
	maxTable = 4 << 20
	// A table that is full after so few bytes for each of its states is not worth building, if that happens thrice in a
	// row. Then the next calm bytes are simulated without a table.
	poorYield = 10
	calm      = 1 << 20
)

// before says what is known of the place in front of the next rune.
type before uint8

const (
	atText  before = 1 << iota // the text begins there
	atLine                     // an LF is in front of it
	atWord                     // a word character is
	atTrash                    // a byte that is not UTF-8 is
)

// An automaton says whether a text has a match. It is deterministic, made of the states that the texts so far needed,
// and bounded: when its table is full it begins anew with the states in hand. A state is a set of instructions that
// wait for a rune; what must hold between two runes is decided when the second is known, so a match may show one rune
// late.
//
// It reads bytes. One that begins a longer rune leads to a half state: a state and the block in which the rune will be.
// So Unicode costs nothing in the loops over bytes. It belongs to one worker.
type automaton struct {
	code     *code
	alphabet *alphabet
	always   bool // the start of any text is a match
	lines    bool // the text is one line: an LF ends it, and the next begins

	table  []uint32 // rowSize entries a state; an entry is a state times rowSize, or special
	states []state
	arena  []uint32 // instructions of the states
	index  map[string]uint32
	halves map[uint64]uint32
	lane   [lanes]uint32 // states in hand, which outlive a new beginning

	now, next sparse
	fresh     []uint32 // the instructions of a state in which no match has begun, but for the first
	key       []byte
	limit     int // bytes
	fed       int // bytes read since the table was empty
	poor      int // tables in a row that yielded too little
	resting   int // bytes that are still simulated
	work      int // steps of threads since stop was asked
	stop      func() bool
	stopped   bool
}

// A state is a place in the table.
type state struct {
	at, n  int32 // in the arena
	before before
	half   uint32 // of a half state; 0: a whole one
	base   uint32 // the state that a half state began in
}

// A half says what is known of a rune: in the upper two bits how many bytes are still to come, below the bits so far,
// or if one is to come the leaf.
const (
	halfShift = 30
	halfMask  = 1<<halfShift - 1
)

// A sparse is a set of instructions in the order in which they came.
type sparse struct {
	place []uint32
	list  []uint32
}

func (s *sparse) add(pc uint32) bool {
	if at := s.place[pc]; int(at) < len(s.list) && s.list[at] == pc {
		return false
	}
	s.place[pc] = uint32(len(s.list))
	s.list = append(s.list, pc)
	return true
}

func newAutomaton(p *Program, stop func() bool) *automaton {
	n := len(p.code.insts)
	d := &automaton{code: &p.code, alphabet: newAlphabet(p.code.sets, p.word), lines: !p.multiline, limit: maxTable,
		stop: stop, now: sparse{place: make([]uint32, n)}, next: sparse{place: make([]uint32, n)}}
	d.advanceStart()
	for _, pc := range d.next.list {
		if d.waits(pc) {
			d.fresh = append(d.fresh, pc)
		}
	}
	slices.Sort(d.fresh)
	d.reset()
	return d
}

// reset empties the table. Its first state is the start of a text.
func (d *automaton) reset() {
	d.table, d.states, d.arena = d.table[:0], d.states[:0], d.arena[:0]
	d.index, d.halves = map[string]uint32{}, map[uint64]uint32{}
	d.fed = 0
	d.next.list = d.next.list[:0]
	d.reach(&d.next, d.code.start, syntax.EmptyBeginText|syntax.EmptyBeginLine)
	if d.intern(atText) == matched {
		d.always = true
		d.addState(state{})
	}
}

// size is what the table takes, in bytes.
func (d *automaton) size() int { return 4*len(d.table) + 12*len(d.arena) + 64*len(d.states) }

// renew empties a full table but for the states in hand.
func (d *automaton) renew() {
	if d.fed < poorYield*len(d.states) {
		d.poor++
	} else {
		d.poor = 0
	}
	type kept struct {
		list   []uint32
		before before
		half   uint32
	}
	var keep [lanes]kept
	for i, s := range d.lane {
		st := d.states[s>>rowShift]
		keep[i] = kept{slices.Clone(d.arena[st.at : st.at+st.n]), st.before, st.half}
	}
	d.reset()
	for i, k := range keep {
		d.next.list = d.next.list[:0]
		for _, pc := range k.list {
			d.next.add(pc)
		}
		d.lane[i] = d.intern(k.before)
		if k.half != 0 {
			d.lane[i] = d.halfOf(d.lane[i], k.half)
		}
	}
	if d.poor >= 3 {
		d.poor, d.resting = 0, calm
	}
}

// intern returns the state of the instructions in next, or matched.
func (d *automaton) intern(b before) uint32 {
	pending := false
	for _, pc := range d.next.list {
		switch d.code.insts[pc].op {
		case opMatch:
			return matched
		case opEmpty:
			pending = pending || d.waits(pc)
		}
	}
	if !pending {
		b = 0
	}
	at := len(d.arena)
	for _, pc := range d.next.list {
		if d.waits(pc) {
			d.arena = append(d.arena, pc)
		}
	}
	list := d.arena[at:]
	slices.Sort(list)
	d.key = append(d.key[:0], byte(b))
	for _, pc := range list {
		d.key = binary.LittleEndian.AppendUint32(d.key, pc)
	}
	if s, ok := d.index[string(d.key)]; ok {
		d.arena = d.arena[:at]
		return s
	}
	s := d.addState(state{at: int32(at), n: int32(len(list)), before: b})
	d.index[string(d.key)] = s
	return s
}

// waits says whether an instruction waits for the next rune. One about a start that is behind waits for nothing.
func (d *automaton) waits(pc uint32) bool {
	switch i := &d.code.insts[pc]; i.op {
	case opRune:
		return true
	case opEmpty:
		return i.cond != syntax.EmptyBeginText && (i.cond != syntax.EmptyBeginLine || !d.lines)
	}
	return false
}

func (d *automaton) addState(st state) uint32 {
	s := uint32(len(d.states)) << rowShift
	d.states = append(d.states, st)
	n := len(d.table)
	d.table = slices.Grow(d.table, rowSize)[:n+rowSize]
	row := d.table[n:]
	for i := range row {
		row[i] = unknown
	}
	return s
}

// halfOf returns the half state of a state.
func (d *automaton) halfOf(base, half uint32) uint32 {
	key := uint64(base)<<32 | uint64(half)
	s, ok := d.halves[key]
	if !ok {
		st := d.states[base>>rowShift]
		st.half, st.base = half, base
		s = d.addState(st)
		d.halves[key] = s
	}
	return s
}

// fill computes the entry of a state for a byte. The caller has made room: it calls renew when full says so.
func (d *automaton) fill(s uint32, b byte) uint32 {
	st := d.states[s>>rowShift]
	switch {
	case st.half != 0:
		return d.fillHalf(s, st, b)
	case b < utf8.RuneSelf:
		class := d.alphabet.ascii[b]
		to := d.step(s, class)
		for c, other := range d.alphabet.ascii {
			if other == class {
				d.table[int(s)+c] = to
			}
		}
		return to
	}
	var half uint32
	switch {
	case b < 0xc2 || b > 0xf4:
		to := d.step(s, classBroken)
		d.table[s+uint32(b)] = to
		return to
	case b < 0xe0:
		half = 1<<halfShift | uint32(d.alphabet.leaf(rune(b&0x1f)))
	case b < 0xf0:
		half = 2<<halfShift | uint32(b&0x0f)
	default:
		half = 3<<halfShift | uint32(b&0x07)
	}
	h := d.halfOf(s, half)
	d.table[s+uint32(b)] = h
	return h
}

// fillHalf is fill for a half state. A byte that cannot go on shows that those before it were no UTF-8.
func (d *automaton) fillHalf(s uint32, st state, b byte) uint32 {
	more, bits := st.half>>halfShift, st.half&halfMask
	var to uint32
	switch {
	case !continues(more, bits, b):
		if to = d.step(st.base, classBroken); to < special {
			if next := d.table[to+uint32(b)]; next != unknown {
				to = next
			} else {
				to = d.fill(to, b)
			}
		}
	case more == 1:
		leaf := &d.alphabet.leaves[bits]
		class := leaf[b&(leafSize-1)]
		to = d.step(st.base, class)
		for i, other := range leaf {
			if other == class {
				d.table[int(s)+utf8.RuneSelf+i] = to
			}
		}
		return to
	case more == 2:
		to = d.halfOf(st.base, 1<<halfShift|uint32(d.alphabet.leaf(rune(bits<<6|uint32(b&0x3f)))))
	default:
		to = d.halfOf(st.base, 2<<halfShift|bits<<6|uint32(b&0x3f))
	}
	d.table[s+uint32(b)] = to
	return to
}

// continues says whether a byte can follow: overlong forms, surrogates and what is behind U+10FFFF are no UTF-8.
func continues(more, bits uint32, b byte) bool {
	low, high := byte(0x80), byte(0xbf)
	switch {
	case more == 2 && bits == 0:
		low = 0xa0
	case more == 2 && bits == 0x0d:
		high = 0x9f
	case more == 3 && bits == 0:
		low = 0x90
	case more == 3 && bits == 4:
		high = 0x8f
	}
	return low <= b && b <= high
}

// step returns the state behind a rune of a class, or matched.
func (d *automaton) step(s uint32, class uint16) uint32 {
	st := d.states[s>>rowShift]
	next := d.advance(d.arena[st.at:st.at+st.n], st.before, class)
	if next == ended {
		return 0
	}
	if next == found {
		return matched
	}
	return d.intern(d.behind(class))
}

// behind is what is known behind a rune of a class.
func (d *automaton) behind(class uint16) (b before) {
	m := d.alphabet.marks[class]
	if m&markLF != 0 {
		b |= atLine
	}
	if d.alphabet.word == nil {
		return b
	}
	if m&markWord != 0 {
		b |= atWord
	}
	if class == classBroken {
		b |= atTrash
	}
	return b
}

// An outcome of advance.
type outcome int

const (
	ongoing outcome = iota // next has the instructions behind the rune
	found                  // there is a match
	ended                  // the line or the text ends, without one
)

// advance moves instructions over a rune into next.
func (d *automaton) advance(list []uint32, b before, class uint16) outcome {
	d.now.list, d.next.list = d.now.list[:0], d.next.list[:0]
	m := d.alphabet.marks[class]
	insts := d.code.insts
	conds := d.conditions(b, class)
	for _, pc := range list {
		i := &insts[pc]
		if i.op == opRune {
			if d.alphabet.in(class, i.set) {
				d.reach(&d.next, i.out, 0)
			}
		} else if i.cond&^conds == 0 {
			d.reach(&d.now, i.out, conds)
		}
	}
	for _, pc := range d.now.list {
		switch i := &insts[pc]; i.op {
		case opMatch:
			return found
		case opRune:
			if d.alphabet.in(class, i.set) {
				d.reach(&d.next, i.out, 0)
			}
		}
	}
	d.work += len(list) + len(d.now.list)
	if class == classEnd || d.lines && m&markLF != 0 {
		return ended
	}
	d.reach(&d.next, d.code.start, 0)
	d.work += len(d.next.list)
	if d.work >= pollSteps {
		d.work = 0
		d.stopped = d.stopped || d.stop()
	}
	return ongoing
}

// conditions says which empty matches hold between what is known and a class.
func (d *automaton) conditions(b before, class uint16) (c syntax.EmptyOp) {
	m := d.alphabet.marks[class]
	if b&atText != 0 {
		c |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if b&atLine != 0 && class != classEnd { // behind the last LF of a text no line begins
		c |= syntax.EmptyBeginLine
	}
	if m&markLF != 0 || class == classEnd {
		c |= syntax.EmptyEndLine
	}
	if class == classEnd || d.lines && m&markLF != 0 {
		c |= syntax.EmptyEndText
	}
	switch left, right := b&atWord != 0, m&markWord != 0; {
	case left != right:
		c |= syntax.EmptyWordBoundary
	case b&atTrash == 0 && class != classBroken:
		c |= syntax.EmptyNoWordBoundary
	}
	return c
}

// reach adds what can be reached without a rune while conditions hold; an instruction whose condition does not hold is
// added, but nothing behind it.
func (d *automaton) reach(q *sparse, pc uint32, conds syntax.EmptyOp) {
	for q.add(pc) {
		switch i := &d.code.insts[pc]; i.op {
		case opAlt:
			d.reach(q, i.out, conds)
			pc = i.arg
		case opEmpty:
			if i.cond&^conds != 0 {
				return
			}
			pc = i.out
		default:
			return
		}
	}
}

// search says whether a text has a match that begins at from or later, and a place at or behind from before which no
// match begins. It may say yes wrongly, never no. The text is one as a whole: an LF in it is a rune.
func (d *automaton) search(text []byte, from int) (begin int, ok bool) {
	if d.resting > 0 || d.always && from == 0 {
		d.resting -= len(text) - from
		return from, true
	}
	begin = from
	d.lane = [lanes]uint32{}
	if from > 0 {
		d.advanceStart()
		s := d.intern(d.behind(d.alphabet.of(runeBefore(text, from))))
		if s == matched {
			return from, true
		}
		d.lane[0] = s
	}
	for at := from; at < len(text); {
		s, t := d.lane[0], d.table
		piece := text[at:min(at+pieceSize, len(text))]
		i := 0
		for ; i < len(piece); i++ {
			to := t[s+uint32(piece[i])]
			if to&special != 0 {
				break
			}
			s = to
		}
		d.lane[0] = s
		d.fed += i
		if at += i; i < len(piece) {
			to := d.move(0, piece[i])
			if to == matched || d.resting > 0 || d.stopped {
				return begin, true
			}
			d.lane[0] = to
			at++
		} else if d.idle(s) {
			begin = at
		}
	}
	s := d.lane[0]
	if st := d.states[s>>rowShift]; st.half != 0 {
		if s = d.step(st.base, classBroken); s == matched {
			return begin, true
		}
	}
	st := d.states[s>>rowShift]
	return begin, d.advance(d.arena[st.at:st.at+st.n], st.before, classEnd) == found
}

// pieceSize is after how many bytes search looks whether a match can have begun.
const pieceSize = 512

// advanceStart puts into next what is there when no match has begun, anywhere but at the start.
func (d *automaton) advanceStart() {
	d.next.list = d.next.list[:0]
	d.reach(&d.next, d.code.start, 0)
}

// idle says whether in a state no match has begun.
func (d *automaton) idle(s uint32) bool {
	st := d.states[s>>rowShift]
	return st.half == 0 && slices.Equal(d.arena[st.at:st.at+st.n], d.fresh)
}
