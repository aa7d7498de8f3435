package textedit

import (
	"bytes"
	"unicode/utf8"
)

// detectHead is how many bytes Detect looks at. A reader that has no more of a file than this and an editor that has
// all of it come to the same encoding.
const detectHead = 64 << 10

// An Encoding is how a file spells its text. The zero value is UTF-8 without a mark. Two are equal if they are the same
// encoding, with a mark or without.
type Encoding struct {
	set    charset
	marked bool
}

type charset uint8

const (
	utf8Set charset = iota
	utf16LE
	utf16BE
	utf32LE
	utf32BE
	gbk // the first of those that no mark tells
	gb18030
	big5
	eucKR
	eucJP
	shiftJIS
	windows1251
	windows1252
	koi8R
)

// Detect says how a file that starts with head is encoded. Head must be the first 64 KiB of the file, or all of a
// shorter one; what is behind is not looked at. A mark decides; a NUL in the first 8 KiB without one is ErrBinary; what
// is UTF-8, but for fewer bad bytes than it has good characters of several bytes, is UTF-8. Other bytes are given the
// name of a legacy encoding only if they speak for one alone, and are else UTF-8 with bytes that are not: a wrong name
// would show wrong text, while the bytes are kept in any case.
//
// UTF-32 is found too, though Apply does not edit it.
func Detect(head []byte) (Encoding, error) {
	if e, ok := marked(head); ok {
		return e, nil
	}
	if bytes.IndexByte(head[:min(len(head), binaryHead)], 0) >= 0 {
		return Encoding{}, ErrBinary
	}
	if len(head) >= detectHead {
		head = wholeRunes(head[:detectHead])
	}
	if utf8.Valid(head) {
		return Encoding{}, nil
	}
	if invalid, multi := census(head); multi >= invalid {
		return Encoding{}, nil
	}
	return Encoding{set: guess(head)}, nil
}

// marked returns the encoding whose byte order mark head starts with. FF FE 00 00 could be UTF-16 that begins with a
// NUL, which no text does.
func marked(head []byte) (Encoding, bool) {
	for _, m := range []struct {
		mark string
		set  charset
	}{
		{"\xef\xbb\xbf", utf8Set},
		{"\xff\xfe\x00\x00", utf32LE}, {"\x00\x00\xfe\xff", utf32BE},
		{"\xff\xfe", utf16LE}, {"\xfe\xff", utf16BE},
	} {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return Encoding{set: m.set, marked: true}, true
		}
	}
	return Encoding{}, false
}

// wholeRunes is text without a character at its end that was cut.
func wholeRunes(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// String is the name as people know it.
func (e Encoding) String() string { return e.set.String() }

func (c charset) String() string {
	return [...]string{
		utf8Set: "UTF-8", utf16LE: "UTF-16 LE", utf16BE: "UTF-16 BE", utf32LE: "UTF-32 LE", utf32BE: "UTF-32 BE",
		gbk: "GBK", gb18030: "GB18030", big5: "Big5", eucKR: "EUC-KR", eucJP: "EUC-JP", shiftJIS: "Shift_JIS",
		windows1251: "Windows-1251", windows1252: "Windows-1252", koi8R: "KOI8-R",
	}[c]
}

// Mark returns how many bytes of byte order mark the file starts with; they are no text.
func (e Encoding) Mark() int {
	if !e.marked {
		return 0
	}
	if e.set == utf8Set {
		return len("\xef\xbb\xbf")
	}
	size, _ := e.Unit()
	return size
}

// Unit returns the bytes of one unit of the encoding, 1, 2 or 4, and whether the high byte comes first. Line ends are
// whole units. In the encodings with units of 1 byte a \n is never part of another character.
func (e Encoding) Unit() (size int, bigEndian bool) {
	switch e.set {
	case utf16LE, utf16BE:
		return 2, e.set == utf16BE
	case utf32LE, utf32BE:
		return 4, e.set == utf32BE
	}
	return 1, false
}

// Editable says that Apply edits the encoding. Of UTF-16 it does not edit what is damaged.
func (e Encoding) Editable() bool { return e.set != utf32LE && e.set != utf32BE }

// Encode returns a file with this text, which is without a mark: the mark, if the encoding has one, and the text. What
// it returns is all that it takes of memory for UTF-16, and for UTF-8. The error is a *MixError. UTF-32 is not written:
// ErrEncoding.
func (e Encoding) Encode(text []byte) ([]byte, error) {
	if !e.Editable() {
		return nil, ErrEncoding
	}
	mark := map[charset]string{utf16LE: "\xff\xfe", utf16BE: "\xfe\xff"}[e.set]
	if e.set == utf8Set && e.marked {
		mark = "\xef\xbb\xbf"
	}
	enc := newEncoder(e.set)
	raw := append(make([]byte, 0, len(mark)+enc.room(text)), mark...)
	if e.set == utf8Set {
		return append(raw, text...), nil
	}
	return enc.encode(raw, text)
}

// Decode returns raw as UTF-8. Raw must not have the mark and begin with a whole character; each byte or unit of it
// that is no character becomes one U+FFFD and counts as bad. A \r\n stays.
func (e Encoding) Decode(raw []byte) (text string, bad int) {
	decoded, bad := e.DecodeBytes(raw)
	return string(decoded), bad
}

// DecodeBytes is Decode for what is not wanted as a string, without a second copy. For UTF-16 the text is all that it
// takes of memory. It is the caller's, unless it is raw: what is UTF-8 already.
func (e Encoding) DecodeBytes(raw []byte) (text []byte, bad int) {
	if e.set == utf8Set {
		if utf8.Valid(raw) {
			return raw, 0
		}
		bad, _ = census(raw)
		return []byte(string([]rune(string(raw)))), bad
	}
	d := newDecoder(e.set)
	text = make([]byte, 0, d.room(raw))
	for len(raw) > 0 {
		r, size, ok := d.next(raw)
		if !ok {
			r = utf8.RuneError
			bad++
		}
		text = utf8.AppendRune(text, r)
		raw = raw[size:]
	}
	return text, bad
}
