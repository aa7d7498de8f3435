package textedit

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// sets are the encodings that are edited in their text.
var sets = []charset{utf16LE, utf16BE, gbk, gb18030, big5, eucKR, eucJP, shiftJIS, windows1251, windows1252, koi8R}

// spell is text in an encoding. What it lacks is left out.
func spell(set charset, text string) []byte {
	var raw []byte
	for _, r := range text {
		b, err := newEncoder(set).encode(nil, []byte(string(r)))
		if err == nil {
			raw = append(raw, b...)
		}
	}
	return raw
}

// applyTo does edits in an encoding that is known, so that tests need no text long enough to be told.
func applyTo(set charset, raw []byte, edits ...Edit) ([]byte, Report, error) {
	c, err := newCoded(set, raw)
	if err != nil {
		return nil, Report{}, err
	}
	return applyCopy(&copyOf{content: c.text, limit: maxContent, name: set.String(), coded: c}, edits, maxContent)
}

func TestApplyKeepsTheEncoding(t *testing.T) {
	const japanese = "わたしはあなたにこのことをおしえてあげることができません。\nそれではまたあしたおあいしましょう。\nこれはとてもおもしろいものですね。\n"
	const chinese = "# 配置文件：不要删除这个文件\r\nname = \"中文\"\r\nvalue = 1\r\n"
	cases := []struct {
		name, before string
		edit         Edit
		want         string
		err          error
	}{
		{"UTF-16 little", "\xff\xfe" + string(spell(utf16LE, "añ\r\nb")), Edit{Old: "a", New: "日😀"}, "\xff\xfe" + string(spell(utf16LE, "日😀ñ\r\nb")), nil},
		{"UTF-16 big", "\xfe\xff" + string(spell(utf16BE, "a\r\nb\n")), Edit{Old: "a\nb", New: "c\nd\ne"}, "\xfe\xff" + string(spell(utf16BE, "c\r\nd\r\ne\n")), nil},
		{"UTF-16, quotes", "\xff\xfe" + string(spell(utf16LE, "say “hi”")), Edit{Old: `"hi"`, New: `"bye"`}, "\xff\xfe" + string(spell(utf16LE, "say “bye”")), nil},
		{"UTF-16, a line deleted", "\xff\xfe" + string(spell(utf16LE, "a\r\nb\r\nc")), Edit{Old: "b"}, "\xff\xfe" + string(spell(utf16LE, "a\r\nc")), nil},
		{"UTF-16, empty", "\xff\xfe", Edit{New: "a\n"}, "\xff\xfe" + string(spell(utf16LE, "a\n")), nil},
		{"UTF-16, white space", "\xfe\xff\x00 ", Edit{New: "é"}, "\xfe\xff\x00\xe9", nil},
		{"GBK", string(spell(gbk, chinese)), Edit{Old: "\"中文\"", New: "\"新的名称\""}, string(spell(gbk, strings.Replace(chinese, "中文", "新的名称", 1))), nil},
		{"GBK, a character that it lacks", string(spell(gbk, chinese)), Edit{Old: "value", New: "😀"}, "", &MixError{Char: '😀'}},
		{"Latin-1", "caf\xe9 na\xefve\n", Edit{Old: "naïve", New: "élève"}, "caf\xe9 \xe9l\xe8ve\n", nil},
		{"Latin-1, a character that it lacks", "caf\xe9 na\xefve\n", Edit{Old: "naïve", New: "日"}, "", &MixError{Char: '日'}},
		{"Latin-1, a character that speaks against it", "caf\xe9 na\xefve\n", Edit{Old: "naïve", New: "ž"}, "", &MixError{Char: 'ž', Untold: true}},
		// The next edit would have been written in the encoding that the rest was then taken for, here Big5.
		{"EUC-JP, and the rest looks like another", string(spell(eucJP, japanese+"は天気がいい")), Edit{Old: japanese}, "", &MixError{Untold: true}},
		{"EUC-JP, and the rest looks like nothing", string(spell(eucJP, japanese+"は")), Edit{Old: japanese}, string(spell(eucJP, "は")), nil},
		{"UTF-32", "\xff\xfe\x00\x00a\x00\x00\x00", Edit{Old: "a", New: "b"}, "", ErrEncoding},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := Apply([]byte(c.before), []Edit{c.edit})
			if string(got) != c.want {
				t.Errorf("content\n got %q, %v\nwant %q", got, err, c.want)
			}
			want, isMix := errors.AsType[*MixError](c.err)
			if !isMix {
				if !errors.Is(err, c.err) {
					t.Errorf("error %v, want %v", err, c.err)
				}
				return
			}
			if mix, ok := errors.AsType[*MixError](err); !ok || mix.Char != want.Char || mix.Untold != want.Untold {
				t.Errorf("error %#v, want a *MixError about %q", err, want.Char)
			}
		})
	}
}

// Two bytes pairs of Shift_JIS are one character. What an edit does not change keeps the pair that it had.
func TestApplyKeepsTheSpelling(t *testing.T) {
	const rare = "\xfa\x54" // U+FFE2, which encodes as 81 CA
	got, report, err := applyTo(shiftJIS, []byte("x "+rare+" y"), Edit{Old: "x ￢ y", New: "x ￢ z"})
	if want := "x " + rare + " z"; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if err == nil && report.Edits[0].Changed != 6 {
		t.Errorf("Changed %d, want the 6 bytes of the match", report.Edits[0].Changed)
	}
}

// A byte that is no character must not become one with the byte that an edit writes behind it.
func TestApplyJoinsNothing(t *testing.T) {
	_, _, err := applyTo(gbk, []byte("a\x81 b"), Edit{Old: " b", New: "Ab"})
	if mix, ok := errors.AsType[*MixError](err); !ok || mix.Char != 0 {
		t.Errorf("error %v, want a *MixError without a character", err)
	}
	if got, _, err := applyTo(gbk, []byte("a\x81 b"), Edit{Old: " b", New: " c"}); err != nil || string(got) != "a\x81 c" {
		t.Errorf("got %q, %v; want the bad byte kept", got, err)
	}
}

// codedText has characters that some of the encodings have and others lack, and all kinds of line ends.
var codedText = []string{"a", "b", "é", "ж", "日", "本", "한", "“", "”", "'", "’", "\n", "\r\n", " ", "\r", "€", "ー"}

// codedComplaint compares an edit in an encoding with the slow one in UTF-8 of the same text. What Apply promises about
// bytes is looked at without it.
func codedComplaint(set charset, raw []byte, e Edit) string {
	d, err := newCoded(set, raw)
	if err != nil {
		return ""
	}
	got, report, err := applyTo(set, raw, e)
	if !utf8.ValidString(e.Old) || !utf8.ValidString(e.New) {
		return ""
	}
	want, done, wantErr := oracle(string(d.text), e)
	if mix, ok := errors.AsType[*MixError](err); ok {
		if mix.Char != 0 && bytes.Contains(spell(set, e.New), spell(set, string(mix.Char))) && len(spell(set, string(mix.Char))) > 0 {
			return "refused a character that there is"
		}
		return ""
	}
	if kind(err) != kind(wantErr) {
		return "error " + kind(err) + ", the oracle has " + kind(wantErr)
	}
	if err != nil {
		return ""
	}
	text, err := newCoded(set, got)
	if err != nil || string(text.text) != want {
		return "text " + quoted(string(got)) + ", the oracle has " + quoted(want)
	}
	d1 := report.Edits[0]
	if d1.Replacements != done.Replacements || d1.Level != done.Level || !slices.Equal(d1.Lines, done.Lines) {
		return "another report than the oracle"
	}
	head := sameHead(raw, got)
	if tail := sameTail(raw[head:], got[min(head, len(got)):]); done.Replacements == 1 && len(raw)-head-tail > d1.Changed+4 {
		return "bytes outside of the match have changed"
	}
	return ""
}

func TestApplyCodedAgainstOracle(t *testing.T) {
	r := source(t)
	for range 20_000 {
		set := sets[r.IntN(len(sets))]
		text := randomText(r, codedText, 20)
		raw := spell(set, text)
		if r.IntN(4) == 0 && len(raw) > 0 {
			raw[r.IntN(len(raw))] ^= byte(1 << r.IntN(8))
		}
		d, err := newCoded(set, raw)
		if err != nil {
			continue
		}
		e := randomEdit(r, strings.ToValidUTF8(string(d.text), "b"), codedText)
		if text := codedComplaint(set, raw, e); text != "" {
			t.Fatalf("%v %q (%q), %#v: %s", set, raw, d.text, e, text)
		}
	}
}

// Several edits in an encoding leave the bytes of what none of them touched.
func TestApplyCodedSeveral(t *testing.T) {
	r := source(t)
	for range 5_000 {
		set := sets[r.IntN(len(sets))]
		raw := spell(set, randomText(r, codedText, 30))
		var edits []Edit
		for i := range 1 + r.IntN(4) {
			text := string(mustText(t, set, raw))
			e := randomEdit(r, text, codedText)
			e.New = string(rune('0'+i)) + strings.Repeat("é日\n"[:r.IntN(2)], r.IntN(3))
			edits = append(edits, e)
		}
		got, _, err := applyTo(set, raw, edits...)
		want, wantErr := raw, error(nil)
		for _, e := range edits {
			if wantErr == nil {
				want, _, wantErr = applyTo(set, want, e)
			}
		}
		if kind(err) == ErrCascade.Error() || !utf8.ValidString(edits[0].New) {
			continue
		}
		if kind(err) != kind(wantErr) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%v %q, %#v: got %q, %v; one by one %q, %v", set, raw, edits, got, err, want, wantErr)
		}
	}
}

func mustText(t *testing.T, set charset, raw []byte) []byte {
	t.Helper()
	c, err := newCoded(set, raw)
	if err != nil {
		t.Fatal(err)
	}
	return c.text
}

// Every place of a long text is found again, whatever was asked before.
func TestCodedFindsItsBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, set := range sets {
		raw := spell(set, randomText(r, codedText, 3*checkpoint))
		c, err := newCoded(set, raw)
		if err != nil {
			t.Fatal(err)
		}
		places, at := []point{}, 0
		for d, rest := newDecoder(set), raw; len(rest) > 0; {
			places = append(places, point{at, len(raw) - len(rest)})
			char, size, _ := d.next(rest)
			at, rest = at+utf8.RuneLen(char), rest[size:]
		}
		for range 2_000 {
			p := places[r.IntN(len(places))]
			if got := c.rawOf(p.text); got != p.raw {
				t.Fatalf("%v: text at %d is byte %d, want %d", set, p.text, got, p.raw)
			}
		}
	}
}

// FuzzCoded looks for text that is not what it was after decoding and encoding, and for edits that touch other bytes.
func FuzzCoded(f *testing.F) {
	f.Add(uint8(0), []byte("a\x00\r\x00\n\x00"), "a\n", "é")
	f.Add(uint8(2), []byte("\xd6\xd0\xce\xc4 \x81"), "中", "文")
	f.Add(uint8(7), []byte("\x83t\x83@\x83C\x83\x8b\xfa\x54"), "ファ", "フ")
	f.Add(uint8(9), []byte("caf\xe9 \x93hi\x94"), `"hi"`, `"é"`)
	f.Fuzz(func(t *testing.T, n uint8, raw []byte, old, add string) {
		if len(raw) > 500 || len(old) > 100 || len(add) > 100 {
			t.Skip("the oracle takes the square of the length")
		}
		set := sets[int(n)%len(sets)]
		d := newDecoder(set)
		for rest := raw; len(rest) > 0; {
			r, size, ok := d.next(rest)
			if size < 1 || size > len(rest) || ok && !utf8.ValidRune(r) {
				t.Fatalf("%v: %q is %q, %d bytes, %v", set, rest, r, size, ok)
			}
			rest = rest[size:]
		}
		if again, err := newEncoder(set).encode(nil, []byte(add)); err == nil {
			if text, bad := (Encoding{set: set}).Decode(again); bad > 0 || text != add {
				t.Fatalf("%v: %q was encoded as %q, which is %q", set, add, again, text)
			}
		}
		edits := []Edit{{Old: old, New: add}, {Old: old, New: add, All: true}}
		if c, err := newCoded(set, raw); err == nil {
			edits = append(edits, pieceEdit(raw, strings.ToValidUTF8(string(c.text), "b"), Edit{New: add, All: len(old)%2 == 0}))
		}
		for _, e := range edits {
			if text := codedComplaint(set, raw, e); text != "" {
				t.Errorf("%v %q, %#v: %s", set, raw, e, text)
			}
		}
	})
}
