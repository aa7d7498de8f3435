package textedit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// binaryHead is how many bytes of a file are looked at for a NUL.
const binaryHead = 8 << 10

var newline = []byte("\n")

// A Text is what a file's bytes are as text.
type Text struct {
	Encoding Encoding
	CRLF     int  // line ends that are \r\n
	LF       int  // line ends that are \n alone
	Invalid  int  // bytes, or units, that are no character of the encoding
	Lines    int  // a last line without a line end is one, too
	NoEOL    bool // the last line has no line end
}

// Decode looks at content. The error is ErrBinary: a NUL in the first 8 KiB, without a mark. Bytes that are no
// characters are no error.
func Decode(content []byte) (Text, error) {
	e, err := Detect(content)
	if err != nil {
		return Text{}, err
	}
	t := Text{Encoding: e}
	text := content[e.Mark():]
	if e.set == utf8Set {
		t.Invalid, _ = census(text)
	} else {
		text, t.Invalid = e.DecodeBytes(text)
	}
	t.CRLF = bytes.Count(text, []byte("\r\n"))
	t.LF = bytes.Count(text, newline) - t.CRLF
	t.NoEOL = len(text) > 0 && text[len(text)-1] != '\n'
	t.Lines = t.CRLF + t.LF
	if t.NoEOL {
		t.Lines++
	}
	return t, nil
}

// Shown returns content as text to read: without a mark, each byte that is no character of its encoding as U+FFFD, line
// ends as they are. What is binary comes back as if it were UTF-8.
func Shown(content []byte) string {
	e, _ := Detect(content) // the zero one if it is binary
	text, _ := e.Decode(content[e.Mark():])
	return text
}

// mark returns the UTF-8 mark that content starts with, or nothing.
func mark(content []byte) []byte {
	if bytes.HasPrefix(content, []byte("\xef\xbb\xbf")) {
		return content[:3]
	}
	return nil
}

// census counts the bytes that are not UTF-8, and the valid characters of more than one byte.
func census(text []byte) (invalid, multi int) {
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			invalid++
		} else {
			multi++
		}
		i += size
	}
	return invalid, multi
}

// mixes says that add would bring characters into a file whose real encoding is not UTF-8, as far as can be seen. What
// old has is allowed: those bytes are there.
func mixes(content []byte, old, add string) bool {
	foreign := strings.ContainsFunc(add, func(r rune) bool {
		return r >= utf8.RuneSelf && !strings.ContainsRune(old, r)
	})
	if !foreign {
		return false
	}
	invalid, multi := census(content[len(mark(content)):])
	return invalid > multi
}

// unmatchable says that old holds U+FFFD and content bytes that are shown as it. The caller has seen a replacement and
// does not know the byte, so nothing may match.
func unmatchable(content []byte, old string) bool {
	return strings.Contains(old, "\ufffd") && !utf8.Valid(content)
}
