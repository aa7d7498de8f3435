package pattern

import (
	"encoding/binary"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	leafSize  = 64 // runes whose UTF-8 differs in the last byte only
	leafShift = 6
)

// The classes that every alphabet has.
const (
	classBroken uint16 = iota // a byte that is not UTF-8: in no set, no word character
	classEnd                  // behind the last rune of a text
)

// An alphabet parts all runes into classes: two runes of a class are in the same sets of a program, so that automata
// treat them alike. ASCII is parted at once, the rest in blocks of 64 runes when one of them is met. It belongs to one
// worker.
type alphabet struct {
	sets   []runeSet
	word   runeSet // what \b is about; nil: there is none
	width  int     // uint64s of a class in bits
	bits   []uint64
	marks  []mark // by class
	ids    map[string]uint16
	ascii  [utf8.RuneSelf]uint16
	pages  []int32 // by rune>>leafShift: its leaf, or -1; made with the first leaf
	leaves [][leafSize]uint16
	known  map[[leafSize]uint16]int32
	key    []byte
	grid   []uint64
}

// A mark is what conditions ask about a class.
type mark uint8

const (
	markWord mark = 1 << iota
	markLF
)

func newAlphabet(sets []runeSet, word runeSet) *alphabet {
	a := &alphabet{sets: sets, word: word, width: max(1, (len(sets)+63)/64), ids: map[string]uint16{}}
	a.bits = make([]uint64, 2*a.width) // of classBroken and classEnd
	a.marks = make([]mark, 2)
	a.classes(0, a.ascii[:leafSize])
	a.classes(leafSize, a.ascii[leafSize:])
	return a
}

// in says whether the runes of a class are in a set.
func (a *alphabet) in(class uint16, set int32) bool {
	return a.bits[int(class)*a.width+int(set>>6)]>>(uint(set)&63)&1 != 0
}

// of returns the class of a rune; of broken and none, too.
func (a *alphabet) of(r rune) uint16 {
	switch {
	case r == broken:
		return classBroken
	case r < 0:
		return classEnd
	case r < utf8.RuneSelf:
		return a.ascii[r]
	}
	return a.leaves[a.leaf(r>>leafShift)][r&(leafSize-1)]
}

// leaf returns the place in leaves of a block of runes. Blocks that are alike share one.
func (a *alphabet) leaf(block rune) int32 {
	if a.pages == nil {
		a.pages = slices.Repeat([]int32{-1}, unicode.MaxRune>>leafShift+1)
		a.known = map[[leafSize]uint16]int32{}
	}
	id := a.pages[block]
	if id < 0 {
		var l [leafSize]uint16
		a.classes(block<<leafShift, l[:])
		var ok bool
		if id, ok = a.known[l]; !ok {
			id = int32(len(a.leaves))
			a.leaves = append(a.leaves, l)
			a.known[l] = id
		}
		a.pages[block] = id
	}
	return id
}

// classes gives the classes of a block of runes.
func (a *alphabet) classes(first rune, out []uint16) {
	if a.grid == nil {
		a.grid = make([]uint64, leafSize*a.width)
	}
	clear(a.grid)
	for i, s := range a.sets {
		s.within(first, func(at int) { a.grid[at*a.width+i>>6] |= 1 << (uint(i) & 63) })
	}
	var word uint64
	a.word.within(first, func(at int) { word |= 1 << at })
	for i := range out {
		row := a.grid[i*a.width : (i+1)*a.width]
		var m mark
		if word>>i&1 != 0 {
			m = markWord
		}
		if first+rune(i) == '\n' {
			m |= markLF
		}
		if i > 0 && m == a.marks[out[i-1]] && slices.Equal(row, a.grid[(i-1)*a.width:i*a.width]) {
			out[i] = out[i-1]
			continue
		}
		out[i] = a.class(row, m)
	}
}

// class returns the class with these members.
func (a *alphabet) class(row []uint64, m mark) uint16 {
	a.key = append(a.key[:0], byte(m))
	for _, w := range row {
		a.key = binary.LittleEndian.AppendUint64(a.key, w)
	}
	id, ok := a.ids[string(a.key)]
	if !ok {
		id = uint16(len(a.marks)) // 65,535 are out of reach: a pattern of 10,000 bytes has too few ranges
		a.ids[string(a.key)] = id
		a.marks = append(a.marks, m)
		a.bits = append(a.bits, row...)
	}
	return id
}

// within calls f for each member of the block that begins with a rune, with its place there.
func (s runeSet) within(first rune, f func(at int)) {
	low, high := 0, len(s)/2 // the first pair that ends at or behind first
	for low < high {
		if mid := (low + high) / 2; s[2*mid+1] < first {
			low = mid + 1
		} else {
			high = mid
		}
	}
	last := first + leafSize - 1
	for i := 2 * low; i < len(s) && s[i] <= last; i += 2 {
		for r := max(s[i], first); r <= min(s[i+1], last); r++ {
			f(int(r - first))
		}
	}
}
