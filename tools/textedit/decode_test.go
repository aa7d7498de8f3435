package textedit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecode(t *testing.T) {
	cases := []struct {
		name, content string
		want          Text
		err           error
	}{
		{"empty", "", Text{}, nil},
		{"one line", "a\n", Text{LF: 1, Lines: 1}, nil},
		{"no line end", "a", Text{Lines: 1, NoEOL: true}, nil},
		{"two lines, no line end", "a\nb", Text{LF: 1, Lines: 2, NoEOL: true}, nil},
		{"blank lines", "\n\n", Text{LF: 2, Lines: 2}, nil},
		{"CRLF", "a\r\nb\r\n", Text{CRLF: 2, Lines: 2}, nil},
		{"mixed", "a\r\nb\nc", Text{CRLF: 1, LF: 1, Lines: 3, NoEOL: true}, nil},
		{"a lone CR ends no line", "a\rb\r", Text{Lines: 1, NoEOL: true}, nil},
		{"a lone CR before a pair", "a\r\r\n", Text{CRLF: 1, Lines: 1}, nil},
		{"mark", "\xef\xbb\xbfa\n", Text{Encoding: Encoding{marked: true}, LF: 1, Lines: 1}, nil},
		{"only the mark", "\xef\xbb\xbf", Text{Encoding: Encoding{marked: true}}, nil},
		{"half a mark", "\xef\xbb", Text{Invalid: 2, Lines: 1, NoEOL: true}, nil},
		{"Latin-1", "caf\xe9 na\xefve\n", Text{Encoding: Encoding{set: windows1252}, LF: 1, Lines: 1}, nil},
		{"bytes", "caf\xe9 \x81\n", Text{Invalid: 2, LF: 1, Lines: 1}, nil},
		{"a surrogate", "\xed\xa0\x80", Text{Invalid: 3, Lines: 1, NoEOL: true}, nil},
		{"U+FFFD is valid", "\ufffd", Text{Lines: 1, NoEOL: true}, nil},
		{"UTF-16 little", "\xff\xfea\x00\r\x00\n\x00b\x00", Text{Encoding: Encoding{utf16LE, true}, CRLF: 1, Lines: 2, NoEOL: true}, nil},
		{"UTF-16 big", "\xfe\xff\x00a\n\x0a", Text{Encoding: Encoding{utf16BE, true}, Lines: 1, NoEOL: true}, nil},
		{"UTF-16 without text", "\xff\xfe", Text{Encoding: Encoding{utf16LE, true}}, nil},
		{"UTF-16 of odd length", "\xff\xfea\x00b", Text{Encoding: Encoding{utf16LE, true}, Invalid: 1, Lines: 1, NoEOL: true}, nil},
		{"half a pair of surrogates", "\xff\xfe\x3d\xd8a\x00", Text{Encoding: Encoding{utf16LE, true}, Invalid: 1, Lines: 1, NoEOL: true}, nil},
		{"UTF-32 little", "\xff\xfe\x00\x00\n\x00\x00\x00", Text{Encoding: Encoding{utf32LE, true}, LF: 1, Lines: 1}, nil},
		{"UTF-32 big", "\x00\x00\xfe\xff", Text{Encoding: Encoding{utf32BE, true}}, nil},
		{"half a mark of UTF-16", "\xff", Text{Invalid: 1, Lines: 1, NoEOL: true}, nil},
		{"NUL", "a\x00b", Text{}, ErrBinary},
		{"NUL at the end of the head", strings.Repeat("a", 8191) + "\x00", Text{}, ErrBinary},
		{"NUL behind the head", strings.Repeat("a", 8192) + "\x00", Text{Lines: 1, NoEOL: true}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Decode([]byte(c.content))
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %+v, %v", got, err, c.want, c.err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a\r\nb\n", "\xef\xbb\xbf\xff\r", "\xff\xfe", "\x00", "日\xe6\x97\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got, err := Decode(content)
		if err != nil {
			if got != (Text{}) {
				t.Errorf("%+v beside an error, want nothing", got)
			}
			return
		}
		if got.Encoding.set != utf8Set {
			return // the text of an encoding is looked at by FuzzCoded
		}
		text, bom := strings.CutPrefix(string(content), "\xef\xbb\xbf")
		want := Text{Encoding: Encoding{marked: bom}}
		for i, r := range text {
			switch {
			case r == '\n' && i > 0 && text[i-1] == '\r':
				want.CRLF++
			case r == '\n':
				want.LF++
			case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
				want.Invalid++
			}
		}
		want.NoEOL = text != "" && !strings.HasSuffix(text, "\n")
		want.Lines = want.CRLF + want.LF
		if want.NoEOL {
			want.Lines++
		}
		if got != want {
			t.Errorf("%q: got %+v, want %+v", content, got, want)
		}
	})
}

func TestShownAndEncoded(t *testing.T) {
	cases := []struct{ name, content, want string }{
		{"UTF-8", "a\r\nb\xff", "a\r\nb\ufffd"},
		{"a mark", "\xef\xbb\xbfé", "é"},
		{"UTF-16 little", "\xff\xfe\xe9\x00=\xd8\x00\xde", "é😀"},
		{"UTF-16 big", "\xfe\xff\x00\xe9\xd8=\xde\x00", "é😀"},
		{"UTF-32", "\x00\x00\xfe\xff\x00\x01\xf6\x00", "😀"},
		{"Latin-1", "caf\xe9 na\xefve", "café naïve"},
		{"binary", "a\x00b", "a\x00b"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Shown([]byte(c.content)); got != c.want {
				t.Errorf("shown as %q, want %q", got, c.want)
			}
			e, err := Detect([]byte(c.content))
			if err != nil || strings.Contains(c.want, "\ufffd") {
				return
			}
			raw, err := e.Encode([]byte(c.want))
			if e.Editable() != (err == nil) {
				t.Errorf("Encode: %v, and Editable is %v", err, e.Editable())
			}
			if err == nil && string(raw) != c.content {
				t.Errorf("encoded as %q, want %q", raw, c.content)
			}
		})
	}
}

// UTF-16 takes no more memory than its text, and the other way round: who reserves that for a file would take a multiple.
func TestUTF16Memory(t *testing.T) {
	t.Parallel()
	for _, set := range []charset{utf16LE, utf16BE} {
		for _, letter := range []string{"x", "é", "日", "😀"} {
			e, text := Encoding{set: set, marked: true}, []byte(strings.Repeat(letter, 1<<18))
			raw, err := e.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			again, bad := e.DecodeBytes(raw[e.Mark():])
			if bad > 0 || !bytes.Equal(again, text) {
				t.Fatalf("%v of %s: %d bad", e, letter, bad)
			}
			const page = 8 << 10 // large slices are whole pages
			if cap(raw) > len(raw)+page || cap(again) > len(again)+page {
				t.Errorf("%v of %s: %d bytes in %d, text of %d in %d", e, letter, len(raw), cap(raw), len(again), cap(again))
			}
		}
	}
}
