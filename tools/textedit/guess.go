package textedit

import (
	"strings"
	"unicode"
)

const (
	// guessChars is how many characters beyond ASCII are looked at per encoding: more do not make the answer better.
	guessChars = 2_000
	// guessLeast is how many of them there must be; of those of one byte twice as many.
	guessLeast = 4
)

// The points of one character. Text in the encoding has an average above 1, in another one below 0.5.
const (
	usual   = 3   // one of the few hundred that make up most of every text
	rare    = -4  // there, but not in common use: what text in another encoding mostly looks like
	misread = -10 // no character
)

// guess returns the legacy encoding that text, which is not UTF-8, is in; utf8Set: it cannot be told.
//
// Frequency decides, not validity: nearly every text of one east Asian encoding is valid in the others, but only in its
// own does it consist of common characters. Two encodings that both fit are no answer.
func guess(text []byte) charset {
	found, best, second := utf8Set, 0, 0 // points are per hundred characters
	for _, set := range []charset{gb18030, big5, eucKR, eucJP, shiftJIS, windows1251, koi8R} {
		points, n := score(text, set)
		if n < guessLeast || set.page() != nil && n < 2*guessLeast {
			continue
		}
		average := points * 100 / n
		if average < enough(n) {
			continue
		}
		if average > best {
			found, best, second = set, average, best
		} else {
			second = max(second, average)
		}
	}
	switch {
	case second > best/2:
		return utf8Set
	case found == gb18030 && !fourBytes(text):
		return gbk
	case found == utf8Set && western(text):
		return windows1252
	}
	return found
}

// enough is the average that n characters must have, in hundredths: a few agree with a wrong encoding by chance.
func enough(n int) int {
	switch {
	case n < 6:
		return 200
	case n < 20:
		return 140
	}
	return 90
}

// score adds up the points of the characters beyond ASCII, if text is in set.
func score(text []byte, set charset) (points, n int) {
	d := newDecoder(set)
	word := cyrillicWord{}
	for len(text) > 0 && n < guessChars {
		r, size, ok := d.next(text)
		raw := text[:size]
		text = text[size:]
		if ok && r < 0x80 {
			points += word.ascii(r)
			continue
		}
		n++
		switch {
		case !ok && len(text) < 4:
			n-- // the head may end within a character
		case !ok:
			points += misread
		case set.page() != nil:
			points += word.letter(r)
		default:
			points += asian(set, r, raw)
		}
	}
	return points, n
}

// asian returns the points of one character of several bytes, or of a half width one.
func asian(set charset, r rune, raw []byte) int {
	lead, trail := raw[0], raw[len(raw)-1]
	kana := 0x3041 <= r && r <= 0x30fe
	switch set {
	case gbk, gb18030:
		switch {
		case strings.ContainsRune(simplified, r):
			return usual
		case strings.ContainsRune(asianMarks, r):
			return 1
		case kana || len(raw) == 4:
			return -2
		case 0xa1 <= lead && lead <= 0xd7 && trail >= 0xa1:
			return 0
		}
	case big5:
		switch {
		case strings.ContainsRune(traditional, r):
			return usual
		case strings.ContainsRune(asianMarks, r):
			return 1
		case 0xa1 <= lead && lead <= 0xc6:
			return 0
		}
	case eucKR:
		switch {
		case strings.ContainsRune(hangul, r):
			return usual
		case 0xb0 <= lead && lead <= 0xc8 && trail >= 0xa1:
			return 0
		case strings.ContainsRune(asianMarks, r):
			return 0
		}
	case eucJP, shiftJIS:
		level1 := set == eucJP && 0xb0 <= lead && lead <= 0xcf || set == shiftJIS && 0x88 <= lead && lead <= 0x98
		switch {
		case 0x3041 <= r && r <= 0x3093: // hiragana: a third of every text
			return 2
		case kana, strings.ContainsRune(asianMarks, r):
			return 1
		case len(raw) == 2 && level1:
			return 0
		}
	}
	return rare
}

func fourBytes(text []byte) bool {
	d := newDecoder(gbk)
	e := newDecoder(gb18030)
	for len(text) > 0 {
		_, size, _ := e.next(text)
		if _, known, _ := d.next(text); size != known {
			return true
		}
		text = text[size:]
	}
	return false
}

// A cyrillicWord is what came before a letter of a text that may be Cyrillic.
type cyrillicWord struct {
	before rune // 0: no letter
	latin  bool // it is an ASCII letter
}

// ascii notes a character. A word has the letters of one alphabet.
func (w *cyrillicWord) ascii(r rune) (points int) {
	latin := unicode.IsLetter(r)
	if latin && w.before != 0 && !w.latin {
		points = rare
	}
	*w = cyrillicWord{latin: latin}
	if latin {
		w.before = r
	}
	return points
}

// letter returns the points of a character beyond ASCII.
func (w *cyrillicWord) letter(r rune) int {
	last := *w
	*w = cyrillicWord{}
	if !unicode.Is(unicode.Cyrillic, r) {
		if strings.ContainsRune("«»„“”–—…№\u00a0", r) {
			return 0
		}
		return rare
	}
	w.before = r
	switch {
	case last.latin:
		return rare
	case strings.ContainsRune("оеаинтсрвлкм", unicode.ToLower(r)) && unicode.IsLower(r) == (last.before != 0):
		return 2
	case unicode.IsUpper(r) && unicode.IsLower(last.before): // the other Cyrillic encoding has its small letters there
		return rare
	case strings.ContainsRune("йъщэфц", unicode.ToLower(r)): // where Greek and Hebrew have common ones
		return rare
	}
	return 0
}
