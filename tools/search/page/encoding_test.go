package page

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// wide is a text in UTF-16 or UTF-32, encoded and decoded in the plainest way.
type wide struct {
	unit  int
	big   bool
	marks bool
}

func (w wide) order() binary.AppendByteOrder {
	if w.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (w wide) encode(text string) []byte {
	var b []byte
	for _, r := range text {
		if w.unit == 4 {
			b = w.order().AppendUint32(b, uint32(r))
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			b = w.order().AppendUint16(b, u)
		}
	}
	return b
}

func (w wide) decode(raw []byte) (string, int) {
	var order binary.ByteOrder = binary.LittleEndian
	if w.big {
		order = binary.BigEndian
	}
	var b strings.Builder
	bad := 0
	for i := 0; i < len(raw); i += w.unit {
		if i+w.unit > len(raw) {
			bad += len(raw) - i
			b.WriteRune(utf8.RuneError)
			break
		}
		if w.unit == 4 {
			b.WriteRune(rune(order.Uint32(raw[i:])))
			continue
		}
		r := rune(order.Uint16(raw[i:]))
		if utf16.IsSurrogate(r) {
			pair := utf8.RuneError
			if i+4 <= len(raw) {
				pair = utf16.DecodeRune(r, rune(order.Uint16(raw[i+2:])))
			}
			if r = pair; r == utf8.RuneError {
				bad += 2
			} else {
				i += 2
			}
		}
		b.WriteRune(r)
	}
	return b.String(), bad
}

func (w wide) encoding() Encoding {
	e := Encoding{Unit: w.unit, BigEndian: w.big, Decode: w.decode}
	if w.marks {
		e.Mark = w.unit
	}
	return e
}

// pairs is an encoding whose characters over 0x7f have two bytes, the second of which may be any but a line feed.
func pairsDecode(raw []byte) (string, int) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] < utf8.RuneSelf:
			b.WriteByte(raw[i])
		case i+1 == len(raw):
			b.WriteRune(utf8.RuneError)
			return b.String(), 1
		default:
			b.WriteRune(0x4e00 + rune(raw[i]&0x7f)<<8 + rune(raw[i+1]))
			i++
		}
	}
	return b.String(), 0
}

func pairsEncode(text string) []byte {
	var b []byte
	for _, r := range text {
		if r < utf8.RuneSelf {
			b = append(b, byte(r))
			continue
		}
		b = append(b, 0x80|byte((r-0x4e00)>>8), byte(r-0x4e00))
	}
	return b
}

// checkDecoded compares a page of the encoded text with that of the same text in UTF-8.
func checkDecoded(t *testing.T, text string, e Encoding, encode func(string) []byte, q Query) {
	t.Helper()
	raw := append(make([]byte, e.Mark), encode(text)...)
	want := slowPage(text, q)
	for i := range want.Lines {
		l := &want.Lines[i]
		from, to := len(encode(text[:l.From])), len(encode(text[:l.To]))
		l.From, l.To = int64(from+e.Mark), int64(to+e.Mark)
		if from == 0 {
			l.From = 0
		}
	}
	if text == "" && e.Mark > 0 { // a mark alone is a line
		return
	}
	q.Encoding = e
	got, err := Read(t.Context(), strings.NewReader(string(raw)), int64(len(raw)), q)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q from %d, %d lines, at most %d runes and %d bytes, unit %d:\n got %.600v\nwant %.600v",
			shorten(text), q.First, q.Lines, q.MaxLine, q.MaxBytes, e.Unit, got, want)
	}
}

func TestPageDecoded(t *testing.T) {
	t.Parallel()
	for _, unit := range []int{2, 4} {
		for _, big := range []bool{false, true} {
			for _, marks := range []bool{false, true} {
				w := wide{unit, big, marks}
				for _, text := range []string{
					"", "a", "a\n", "a\nb", "\n", "\n\n", "a\r\nb\r\n", "a\r", "é😀\nx😀x\n", "\u0a0a\u0a00\u000a\u010a\n\u0a0a",
					"1\n2\n3\n4\n5\n6", strings.Repeat("日", 10) + "\r\n",
				} {
					for first := range 5 {
						for lines := range 4 {
							for _, runes := range []int{0, 1, 3} {
								checkDecoded(t, text, w.encoding(), w.encode, Query{First: first, Lines: lines, MaxLine: runes, MaxBytes: int64(runes) * 5})
							}
						}
					}
				}
			}
		}
	}
}

// Characters lie across the borders of chunks and of what is decoded at once, and lines are longer than several of both.
func TestPageDecodedAcrossChunks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"丠", "a", "\r\n", "\n", "\r", strings.Repeat("丠x丱", decodedPiece/4), strings.Repeat("y", decodedPiece-1), strings.Repeat("亀", decodedPiece+1), "\n"}
	for range 12 {
		var b strings.Builder
		for range 10 {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		q := Query{First: r.IntN(4), Lines: r.IntN(5), MaxLine: r.IntN(3) * 1000, MaxBytes: int64(r.IntN(3)) * 5000}
		checkDecoded(t, b.String(), Encoding{Unit: 1, Decode: pairsDecode}, pairsEncode, q)
		w := wide{2, r.IntN(2) == 0, true}
		checkDecoded(t, strings.ReplaceAll(b.String(), "亀", "😀"), w.encoding(), w.encode, q)
	}
}

// What is damaged is counted, and the line ends are found nevertheless.
func TestPageDecodedDamaged(t *testing.T) {
	t.Parallel()
	w := wide{2, false, true}
	raw := "\xff\xfea\x00\x00\xd8b\x00\n\x00c\x00\x0a" // half a pair, and half a unit at the end that looks like a line feed
	p, err := Read(t.Context(), strings.NewReader(raw), int64(len(raw)), Query{Lines: 9, Encoding: w.encoding()})
	want := []Line{{Text: "a\ufffdb", To: 10, End: 1, Bad: 2}, {Text: "c\ufffd", From: 10, To: 13, Bad: 1}}
	if err != nil || !reflect.DeepEqual(p.Lines, want) || p.Total != 2 {
		t.Errorf("got %+v, %v\nwant %+v", p, err, want)
	}
	// Past the end, only the number of lines counts.
	p, err = Read(t.Context(), strings.NewReader(raw), int64(len(raw)), Query{First: 9, Lines: 9, Encoding: w.encoding()})
	if err != nil || p.Total != 2 || len(p.Lines) != 0 {
		t.Errorf("got %+v, %v; want no line of 2", p, err)
	}
}

func FuzzPageDecoded(f *testing.F) {
	f.Add("a\r\nb\n😀", 1, 2, 3, true, true)
	f.Add("\u0a0a\n日本\n", 0, 1, 0, false, false)
	f.Fuzz(func(t *testing.T, text string, first, lines, runes int, big, four bool) {
		w := wide{2, big, true}
		if four {
			w.unit = 4
		}
		if text = strings.ToValidUTF8(text, ""); strings.Contains(text, utf8Mark) {
			return
		}
		checkDecoded(t, text, w.encoding(), w.encode, Query{First: first % 100, Lines: lines & 63, MaxLine: runes & 15})
	})
}

// A line without an end costs no more memory than what is decoded at once.
func TestPageDecodedMemory(t *testing.T) {
	const size = 64 << 20
	e := wide{2, false, false}.encoding()
	decode, most := e.Decode, 0
	e.Decode = func(raw []byte) (string, int) {
		most = max(most, len(raw))
		return decode(raw)
	}
	p, err := Read(t.Context(), aaa{}, size, Query{Lines: 1, MaxLine: 2000, Encoding: e})
	if err != nil || len(p.Lines) != 1 || p.Lines[0].Cut != size/2-2000 {
		t.Fatalf("got %.300v, %v", p, err)
	}
	if most > chunkSize+2*decodedPiece {
		t.Errorf("%d bytes were decoded at once", most)
	}
}

// aaa is a UTF-16 text of one letter without end.
type aaa struct{}

func (aaa) ReadAt(p []byte, at int64) (int, error) {
	for i := range p {
		p[i] = 'a' * byte(1-(at+int64(i))%2)
	}
	return len(p), nil
}
