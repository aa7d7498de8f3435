package textedit

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
)

// An encoder spells text in an encoding. It is not for UTF-8.
type encoder struct {
	set   charset
	page  *charmap.Charmap
	table *encoding.Encoder
}

func newEncoder(set charset) *encoder {
	e := &encoder{set: set, page: set.page()}
	if t := set.table(); t != nil {
		e.table = t.NewEncoder()
	}
	return e
}

// encode appends the bytes of text to raw. A *MixError names a character that the encoding lacks, or that would be read
// as another one.
func (e *encoder) encode(raw, text []byte) ([]byte, error) {
	raw = slices.Grow(raw, e.room(text))
	d := newDecoder(e.set)
	for len(text) > 0 {
		from := len(raw)
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if r != utf8.RuneError || size > 1 {
			raw = e.append(raw, r)
		}
		if len(raw) == from {
			return nil, &MixError{Encoding: Encoding{set: e.set}, Char: r}
		}
		if again, size, ok := d.next(raw[from:]); !ok || again != r || size != len(raw)-from {
			return nil, &MixError{Encoding: Encoding{set: e.set}, Char: r}
		}
	}
	return raw, nil
}

// room is how many bytes text takes, and in legacy encodings at most, but for the few characters of 4 bytes of GB18030.
func (e *encoder) room(text []byte) int {
	if e.set != utf16LE && e.set != utf16BE {
		return len(text)
	}
	units := utf8.RuneCount(text)
	for _, b := range text {
		if b >= 0xf0 { // begins a character that takes two
			units++
		}
	}
	return 2 * units
}

// append adds one character, or nothing if there are no bytes for it.
func (e *encoder) append(raw []byte, r rune) []byte {
	switch e.set {
	case utf16LE:
		return append16(raw, r, binary.LittleEndian)
	case utf16BE:
		return append16(raw, r, binary.BigEndian)
	}
	switch {
	case r < utf8.RuneSelf:
		return append(raw, byte(r))
	case e.page != nil:
		if b, ok := e.page.EncodeRune(r); ok {
			raw = append(raw, b)
		}
	default:
		if b, err := e.table.String(string(r)); err == nil {
			raw = append(raw, b...)
		}
	}
	return raw
}

func append16(raw []byte, r rune, order binary.AppendByteOrder) []byte {
	if one, two := utf16.EncodeRune(r); one != utf8.RuneError {
		return order.AppendUint16(order.AppendUint16(raw, uint16(one)), uint16(two))
	}
	return order.AppendUint16(raw, uint16(r))
}
