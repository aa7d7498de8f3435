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
	BOM     bool // starts with the UTF-8 mark, which is not part of the text
	CRLF    int  // line ends that are \r\n
	LF      int  // line ends that are \n alone
	Invalid int  // bytes that are not UTF-8
	Lines   int  // a last line without a line end is one, too
	NoEOL   bool // the last line has no line end
}

// Decode looks at content. Errors: ErrBinary (a NUL in the first 8 KiB), ErrEncoding (UTF-16, UTF-32). Bytes that are
// not UTF-8 are no error: they are kept as they are.
func Decode(content []byte) (Text, error) {
	if err := sniff(content); err != nil {
		return Text{}, err
	}
	bom := mark(content)
	text := content[len(bom):]
	crlf := bytes.Count(text, []byte("\r\n"))
	t := Text{
		BOM:   len(bom) > 0,
		CRLF:  crlf,
		LF:    bytes.Count(text, newline) - crlf,
		NoEOL: len(text) > 0 && text[len(text)-1] != '\n',
	}
	t.Lines = t.CRLF + t.LF
	if t.NoEOL {
		t.Lines++
	}
	t.Invalid, _ = census(text)
	return t, nil
}

// sniff refuses what is not text, or not text of a kind that can be edited. The marks come first: UTF-16 is full of NULs.
func sniff(content []byte) error {
	for _, wide := range []string{"\xff\xfe", "\xfe\xff", "\x00\x00\xfe\xff"} {
		if bytes.HasPrefix(content, []byte(wide)) {
			return ErrEncoding
		}
	}
	if bytes.IndexByte(content[:min(len(content), binaryHead)], 0) >= 0 {
		return ErrBinary
	}
	return nil
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
