package textedit

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"
)

// checkpoint is how many bytes of the file lie between two places whose offset in the text is noted: few enough to be
// gone through again at once, enough to take no memory worth the name.
const checkpoint = 1 << 10

// unreadable stands in the text for a byte that is no character of the file's encoding. It is no UTF-8, so that nothing
// that was sent matches it.
const unreadable = 0xff

// A coded is the content of a file that is not UTF-8, and where each part of its text comes from. Edits are made in the
// text; what they leave is copied as the bytes that it was, and only what they write is encoded.
type coded struct {
	set    charset
	raw    []byte // of the file, without the mark
	text   []byte // of the file
	points []point
	last   point // the place that was looked up last: the next one is mostly behind it
	enc    *encoder
	pieces []piece // of the text as the edits so far have made it

	guessed bool // the encoding was told from the bytes, and must be from what becomes of them
}

// A point is a place between two characters.
type point struct{ text, raw int }

// A piece is a part of the text that the file had, from an offset in it, or one that is new.
type piece struct {
	from, size int
	fresh      bool   // it is new
	added      []byte // UTF-8, of what is new in a coded; nil in a trail, which must not keep the contents of all edits
}

// A splice is text that replaces some other text. It must not be written to once it is noted.
type splice struct {
	from, to int
	add      []byte
}

// newCoded decodes raw, which has no mark. The error is ErrEncoding for what is not edited: UTF-32, and UTF-16 that is
// damaged, for which no spelling is right.
func newCoded(set charset, raw []byte) (*coded, error) {
	if set == utf32LE || set == utf32BE {
		return nil, ErrEncoding
	}
	c := &coded{set: set, raw: raw, enc: newEncoder(set), text: make([]byte, 0, len(raw)+len(raw)/2)}
	d := newDecoder(set)
	next := 0
	for at := 0; at < len(raw); {
		if at >= next {
			c.points = append(c.points, point{len(c.text), at})
			next = at + checkpoint
		}
		r, size, ok := d.next(raw[at:])
		switch {
		case ok:
			c.text = utf8.AppendRune(c.text, r)
		case set == utf16LE || set == utf16BE:
			return nil, ErrEncoding
		default:
			c.text = append(c.text, unreadable)
		}
		at += size
	}
	c.pieces = []piece{{size: len(c.text)}}
	return c, nil
}

// rawOf returns the offset in the file of an offset in its text, which must be between two characters.
func (c *coded) rawOf(at int) int {
	n, found := slices.BinarySearchFunc(c.points, at, func(p point, t int) int { return cmp.Compare(p.text, t) })
	if found {
		return c.points[n].raw
	}
	if n == 0 {
		return 0
	}
	p := c.points[n-1]
	if p.text < c.last.text && c.last.text <= at {
		p = c.last
	}
	d := newDecoder(c.set)
	for p.text < at {
		r, size, ok := d.next(c.raw[p.raw:])
		p.raw += size
		p.text++
		if ok {
			p.text += utf8.RuneLen(r) - 1
		}
	}
	c.last = p
	return p.raw
}

// bytesOf returns how a piece is spelled in the file.
func (c *coded) bytesOf(p piece) []byte {
	if p.added != nil {
		raw, _ := c.enc.encode(nil, p.added) // it was encoded before
		return raw
	}
	return c.raw[c.rawOf(p.from):c.rawOf(p.from+p.size)]
}

// splice notes what an edit has done to the text: splices are in order and do not overlap. It returns how many bytes of
// the file, as the edits so far have made it, they took the place of. The error is a *MixError.
//
// What a splice leaves as it was at its beginning and at its end stays the file's: some encodings have two spellings
// for a character, and the file keeps its own.
func (c *coded) splice(text []byte, splices []splice) (changed int, err error) {
	last := ""
	w := &walker{c: c, old: c.pieces}
	at := 0
	for _, s := range splices {
		head, tail := sameEnds(string(text[s.from:s.to]), string(s.add))
		add := string(s.add[head : len(s.add)-tail])
		if add != last {
			if _, err := c.enc.encode(nil, []byte(add)); err != nil {
				return 0, err
			}
			last = add
		}
		w.take(s.from-at, true, nil)
		w.take(head, true, &changed)
		w.take(s.to-tail-s.from-head, false, &changed)
		w.add([]byte(add))
		w.take(tail, true, &changed)
		at = s.to
	}
	w.take(len(text)-at, true, nil)
	c.pieces = w.made
	return changed, nil
}

// content returns the file as the edits have made it. A *MixError: it is not what the text has become, since bytes that
// were no character make one with what stands beside them now, or it is unlike text in its encoding now.
// ErrTooLarge: it has more than limit bytes.
func (c *coded) content(mark, text []byte, limit int) ([]byte, error) {
	out := bytes.Clone(mark)
	var foreign rune
	for _, p := range c.pieces {
		raw := c.bytesOf(p)
		for _, r := range string(p.added) {
			if r >= utf8.RuneSelf && foreign == 0 {
				foreign = r
			}
		}
		if len(out)+len(raw) > limit {
			return nil, ErrTooLarge
		}
		out = append(out, raw...)
	}
	if again, err := newCoded(c.set, out[len(mark):]); err != nil || !bytes.Equal(again.text, text) {
		return nil, &MixError{Encoding: Encoding{set: c.set}}
	}
	if again, _ := Detect(out); c.guessed && again.set != c.set && (foreign != 0 || again.misreads(out, text)) {
		return nil, &MixError{Encoding: Encoding{set: c.set}, Char: foreign, Untold: true}
	}
	return out, nil
}

// misreads says that a legacy encoding shows raw, which has no mark, as another text. Bytes that are shown as none are
// harmless: nothing is written in a wrong encoding then.
func (e Encoding) misreads(raw, text []byte) bool {
	if e.set == utf8Set {
		return false
	}
	shown, _ := e.Decode(raw)
	return shown != string(text)
}

// A walker goes over the pieces once, and makes those after an edit.
type walker struct {
	c    *coded
	old  []piece
	used int // bytes of the first old piece that were taken
	made []piece
}

// take goes n bytes of the text on, and keeps them or leaves them out. Their bytes in the file are added to size, if it
// is not nil.
func (w *walker) take(n int, keep bool, size *int) {
	for n > 0 {
		p := w.old[0].part(w.used, n)
		w.used += p.size
		if w.used == w.old[0].size {
			w.old, w.used = w.old[1:], 0
		}
		n -= p.size
		if size != nil {
			*size += len(w.c.bytesOf(p))
		}
		if keep {
			w.made = append(w.made, p)
		}
	}
}

func (w *walker) add(text []byte) {
	if len(text) > 0 {
		w.made = append(w.made, piece{size: len(text), fresh: true, added: text})
	}
}

// part returns at most n bytes of p, from an offset on.
func (p piece) part(at, n int) piece {
	n = min(n, p.size-at)
	if p.added != nil {
		return piece{size: n, fresh: true, added: p.added[at : at+n]}
	}
	return piece{from: p.from + at, size: n, fresh: p.fresh}
}
