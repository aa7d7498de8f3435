package pages

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// decode returns the body as valid UTF-8 without a byte order mark.
func decode(body []byte, contentType, form string) string {
	name := decodeName(body, contentType)
	if name == "" {
		name = chosen(body, contentType, form)
	}
	return strings.TrimPrefix(strings.ToValidUTF8(decodeAs(body, name), "\uFFFD"), "\uFEFF")
}

// decodeAs decodes from an encoding as charset knows it; an unknown one is UTF-8.
func decodeAs(body []byte, name string) string {
	e, _ := charset.Lookup(name)
	if e == nil || name == "utf-8" {
		return string(body)
	}
	text, err := e.NewDecoder().Bytes(body)
	if err != nil {
		return string(body)
	}
	return string(text)
}

// decodeName is the encoding of a body if its bytes leave no doubt: a byte order mark, zeros between letters, or valid
// UTF-8, which no other encoding happens to be. "": they do not tell.
func decodeName(body []byte, contentType string) string {
	switch {
	case bytes.HasPrefix(body, []byte{0xEF, 0xBB, 0xBF}):
		return "utf-8"
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}):
		return "utf-16le"
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}):
		return "utf-16be"
	}
	var zeros [2]int
	start := body[:min(len(body), 512)]
	for i, c := range start {
		if c == 0 {
			zeros[i%2]++
		}
	}
	if many := len(start) / 5; many > 2 {
		switch {
		case zeros[0] > many && zeros[1] == 0:
			return "utf-16be"
		case zeros[1] > many && zeros[0] == 0:
			return "utf-16le"
		}
	}
	if said, ok := labelled(contentType); ok && strings.HasPrefix(said, "utf-16") && zeros != [2]int{} {
		return said
	}
	escapes := bytes.Contains(start, []byte("\x1b$")) || bytes.Contains(start, []byte("\x1b(")) // ISO-2022-JP is ASCII
	if utf8.Valid(body) && !escapes {
		return "utf-8"
	}
	return ""
}

// labelled is the encoding that a Content-Type names.
func labelled(contentType string) (name string, ok bool) {
	_, params, _ := mime.ParseMediaType(contentType)
	if params["charset"] == "" {
		return "", false
	}
	_, name = charset.Lookup(params["charset"])
	return name, name != "" && name != "replacement"
}

// inside finds the encoding that a page or an XML file names itself.
var inside = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]+)|` +
		`<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w-]+)`)
})

// guesses are tried if what is declared gives no text that anyone would write.
var guesses = []string{"shift_jis", "euc-jp", "gb18030", "big5", "euc-kr", "windows-1251", "koi8-r", "windows-1250",
	"windows-1253", "windows-1252"}

const sampled = 32 << 10 // bytes by which encodings are compared

// chosen is the encoding that gives the most plausible text: what the server says, then what the page says, then what
// is common.
func chosen(body []byte, contentType, form string) string {
	var declared []string
	if name, ok := labelled(contentType); ok {
		declared = append(declared, name)
	}
	if form == "html" || form == "xml" {
		if m := inside().FindSubmatch(body[:min(len(body), 4096)]); m != nil {
			if _, name := charset.Lookup(string(append(m[1], m[2]...))); name != "" && name != "replacement" {
				declared = append(declared, name)
			}
		}
	}
	sample := around(body)
	best, least := "windows-1252", 1<<62
	for i, name := range append(declared, guesses...) {
		odd := oddness(decodeAs(sample, name))
		if i >= len(declared) && i > 0 && i == len(declared) && plausible(least, len(sample)) {
			break // what is declared makes sense
		}
		if odd < least {
			best, least = name, odd
		}
	}
	return best
}

func plausible(odd, size int) bool { return odd*50 < size }

// around returns a part of a body that holds bytes above ASCII.
func around(body []byte) []byte {
	first := bytes.IndexFunc(body, func(r rune) bool { return r >= utf8.RuneSelf })
	first = max(0, first-64)
	for first > 0 && body[first] >= 0x80 { // begin between characters
		first--
	}
	part := body[first:min(len(body), first+sampled)]
	if cut := bytes.LastIndexByte(part, '\n'); len(part) == sampled && cut > sampled/2 {
		part = part[:cut]
	}
	return part
}

// oddness counts what is odd about a decoded text: what could not be decoded, controls, scripts that change within a
// word, capitals within a word, runs of Latin letters with marks, characters that are hardly used.
func oddness(text string) (odd int) {
	var before rune
	run := 0
	for _, r := range text {
		switch {
		case r == utf8.RuneError:
			odd += 20
		case r >= 0x80 && r < 0xA0, r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f':
			odd += 10
		case r >= 0xE000 && r <= 0xF8FF:
			odd += 10
		case r >= 0xFF61 && r <= 0xFF9F: // halfwidth katakana: what Shift_JIS makes of other encodings
			odd += 3
		case r >= 0x2500 && r < 0x25A0: // box drawing: what KOI8-R makes of them
			odd += 4
		case r > 0x7F && !unicode.IsLetter(r) && r < 0x2000 && unicode.IsLetter(before):
			odd += 2
		case unicode.IsUpper(r) && unicode.IsLower(before) && r > 0x7F:
			odd += 3
		case rare(r):
			odd += 2
		case isASCIILetter(before) && foreign(r), isASCIILetter(r) && foreign(before):
			odd += 4 // within a word of Latin letters
		}
		if r > 0x7F && r < 0x250 && unicode.IsLetter(r) {
			if run++; run > 2 {
				odd += 3
			}
		} else {
			run = 0
		}
		if r > 0x7F && unicode.IsLetter(r) && unicode.IsLetter(before) && before > 0x7F && group(r) != group(before) {
			odd += 2
		}
		before = r
	}
	return odd
}

func isASCIILetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }

// foreign says whether a letter does not stand in words of Latin letters.
func foreign(r rune) bool { return r >= 0x250 && unicode.IsLetter(r) }

// group tells scripts apart that do not meet in a word.
func group(r rune) int {
	switch {
	case r < 0x250:
		return 1
	case r < 0x400:
		return 2 // Greek
	case r < 0x530:
		return 3 // Cyrillic
	case r >= 0xAC00 && r < 0xD7B0:
		return 5 // Hangul
	case r >= 0x3040:
		return 4 // Han with kana
	}
	return 6
}

// rare says whether an ideograph lies outside of what modern texts mostly use.
func rare(r rune) bool {
	return r >= 0x3400 && r < 0x4E00 || r >= 0x20000 || r >= 0xF900 && r < 0xFB00
}
