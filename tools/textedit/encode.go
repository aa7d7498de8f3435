package textedit

import (
	"encoding/binary"
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

// encode returns the bytes of text. A *MixError names a character that the encoding lacks, or that would be read as
// another one.
func (e *encoder) encode(text string) ([]byte, error) {
	raw := make([]byte, 0, 2*len(text))
	d := newDecoder(e.set)
	for i, r := range text {
		from := len(raw)
		if _, size := utf8.DecodeRuneInString(text[i:]); r != utf8.RuneError || size > 1 {
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
