package textedit

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/transform"
)

// table returns the table of a legacy encoding of several bytes per character, nil for the others.
func (c charset) table() encoding.Encoding {
	switch c {
	case gbk:
		return simplifiedchinese.GBK
	case gb18030:
		return simplifiedchinese.GB18030
	case big5:
		return traditionalchinese.Big5
	case eucKR:
		return korean.EUCKR
	case eucJP:
		return japanese.EUCJP
	case shiftJIS:
		return japanese.ShiftJIS
	}
	return nil
}

// page returns the table of a legacy encoding of one byte per character, nil for the others.
func (c charset) page() *charmap.Charmap {
	switch c {
	case windows1251:
		return charmap.Windows1251
	case windows1252:
		return charmap.Windows1252
	case koi8R:
		return charmap.KOI8R
	}
	return nil
}

// A decoder takes the characters of a text one by one, since each must be known with its size. It is not for UTF-8.
type decoder struct {
	set   charset
	page  *charmap.Charmap
	table transform.Transformer
	out   [utf8.UTFMax * 2]byte
}

func newDecoder(set charset) *decoder {
	d := &decoder{set: set, page: set.page()}
	if t := set.table(); t != nil {
		d.table = t.NewDecoder().Transformer
	}
	return d
}

// next returns the first character of raw, which is not empty, and its bytes. If ok is false they are none, and are one
// unit, or what is left of it.
func (d *decoder) next(raw []byte) (r rune, size int, ok bool) {
	switch d.set {
	case utf16LE:
		return next16(raw, binary.LittleEndian)
	case utf16BE:
		return next16(raw, binary.BigEndian)
	case utf32LE:
		return next32(raw, binary.LittleEndian)
	case utf32BE:
		return next32(raw, binary.BigEndian)
	}
	if raw[0] < utf8.RuneSelf {
		return rune(raw[0]), 1, true
	}
	if d.page != nil {
		r = d.page.DecodeByte(raw[0])
		return r, 1, r != utf8.RuneError
	}
	size = d.set.width(raw)
	if size > len(raw) {
		return 0, 1, false
	}
	n, used, err := d.table.Transform(d.out[:], raw[:size], true)
	r, length := utf8.DecodeRune(d.out[:n])
	// One character, all of the bytes and nothing else: a few bytes of Big5 are two characters, and a bad second byte
	// is a character of its own.
	if err != nil || used != size || length != n || r == utf8.RuneError {
		return 0, 1, false
	}
	return r, size, true
}

// room is how many bytes raw takes as text, and about how many of legacy encodings and of what is damaged.
func (d *decoder) room(raw []byte) int {
	if d.set != utf16LE && d.set != utf16BE {
		return len(raw) + len(raw)/2
	}
	size := 0
	for len(raw) > 0 {
		r, n, _ := d.next(raw)
		size, raw = size+utf8.RuneLen(r), raw[n:]
	}
	return size
}

// width returns how many bytes the character has that starts with raw, as far as its first two can say.
func (c charset) width(raw []byte) int {
	first := raw[0]
	switch {
	case c == gb18030 && len(raw) > 1 && '0' <= raw[1] && raw[1] <= '9':
		return 4
	case c == eucJP && first == 0x8f:
		return 3
	case c == shiftJIS && (first == 0x80 || 0xa0 <= first && first <= 0xdf):
		return 1
	case (c == gbk || c == gb18030) && first == 0x80: // € of Windows
		return 1
	}
	return 2
}

func next16(raw []byte, order binary.ByteOrder) (r rune, size int, ok bool) {
	if len(raw) < 2 {
		return 0, len(raw), false
	}
	r = rune(order.Uint16(raw))
	if !utf16.IsSurrogate(r) {
		return r, 2, true
	}
	if len(raw) < 4 {
		return 0, 2, false
	}
	r = utf16.DecodeRune(r, rune(order.Uint16(raw[2:])))
	if r == utf8.RuneError {
		return 0, 2, false
	}
	return r, 4, true
}

func next32(raw []byte, order binary.ByteOrder) (r rune, size int, ok bool) {
	if len(raw) < 4 {
		return 0, len(raw), false
	}
	n := order.Uint32(raw)
	if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, 4, false
	}
	return rune(n), 4, true
}
