package search

import (
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Chunk is how much of a UTF-16 text is decoded at once, in bytes.
const utf16Chunk = 64 << 10

// utf16Order recognises a UTF-16 text by its mark. nil: it is none.
func utf16Order(head []byte) binary.ByteOrder {
	switch {
	case len(head) < 2:
		return nil
	case head[0] == 0xff && head[1] == 0xfe:
		return binary.LittleEndian
	case head[0] == 0xfe && head[1] == 0xff:
		return binary.BigEndian
	}
	return nil
}

// A utf16Reader decodes UTF-16 to UTF-8 while it is read. Half a surrogate pair, and half a unit at the end, become
// U+FFFD.
type utf16Reader struct {
	r     io.Reader
	order binary.ByteOrder
	raw   [utf16Chunk]byte
	n     int    // bytes in raw
	out   []byte // decoded, not yet read
	err   error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

func (u *utf16Reader) fill() {
	n, err := u.r.Read(u.raw[u.n:])
	u.n, u.err = u.n+n, err
	u.out = u.out[:0]
	i := 0
	for ; i+1 < u.n; i += 2 {
		r := rune(u.order.Uint16(u.raw[i:]))
		if utf16.IsSurrogate(r) {
			if i+3 >= u.n && err == nil {
				break // its other half comes with the next bytes
			}
			pair := utf8.RuneError
			if i+3 < u.n {
				pair = utf16.DecodeRune(r, rune(u.order.Uint16(u.raw[i+2:])))
			}
			if r = pair; r != utf8.RuneError {
				i += 2
			}
		}
		u.out = utf8.AppendRune(u.out, r)
	}
	u.n = copy(u.raw[:], u.raw[i:u.n])
	if err != nil && u.n > 0 {
		u.out = utf8.AppendRune(u.out, utf8.RuneError)
		u.n = 0
	}
}
