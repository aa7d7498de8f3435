package textedit

import (
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
		{"mark", "\xef\xbb\xbfa\n", Text{BOM: true, LF: 1, Lines: 1}, nil},
		{"only the mark", "\xef\xbb\xbf", Text{BOM: true}, nil},
		{"half a mark", "\xef\xbb", Text{Invalid: 2, Lines: 1, NoEOL: true}, nil},
		{"Latin-1", "caf\xe9 na\xefve\n", Text{Invalid: 2, LF: 1, Lines: 1}, nil},
		{"a surrogate", "\xed\xa0\x80", Text{Invalid: 3, Lines: 1, NoEOL: true}, nil},
		{"U+FFFD is valid", "\ufffd", Text{Lines: 1, NoEOL: true}, nil},
		{"UTF-16 little", "\xff\xfea\x00", Text{}, ErrEncoding},
		{"UTF-16 big", "\xfe\xff\x00a", Text{}, ErrEncoding},
		{"UTF-16 without text", "\xff\xfe", Text{}, ErrEncoding},
		{"UTF-32 little", "\xff\xfe\x00\x00", Text{}, ErrEncoding},
		{"UTF-32 big", "\x00\x00\xfe\xff", Text{}, ErrEncoding},
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
		text, bom := strings.CutPrefix(string(content), "\xef\xbb\xbf")
		want := Text{BOM: bom}
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
