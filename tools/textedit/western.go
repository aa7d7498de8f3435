package textedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// westernShared are the letters that Windows-1252 has where the tables for central Europe and Turkish have them, too:
// text with no others is right in any of them.
const westernShared = "áâäçéëíîóôöúüß"

// A westernLanguage is one of those for which Windows-1252 is made. Icelandic is left out, whose þ and ð stand where
// Turkish, a more common language, has its ş and ğ.
type westernLanguage struct {
	letters string
	needs   string // one of these must be there if a letter is not shared; "": none
	sure    string // of the letters not shared: one that is enough without another one
	atEnd   bool   // its letters end words
}

func westernLanguages() []westernLanguage {
	return []westernLanguage{
		{letters: westernShared},
		{letters: "àâçéèêëîïôùûüœ", needs: "éà", sure: "àèêï"}, // French
		{letters: "áéíóúüñ", needs: "áéíú", sure: "ñ"},         // Spanish
		{letters: "áâãàçéêíóôõúü", needs: "ãç"},                // Portuguese
		{letters: "àèéìòù", sure: "à", atEnd: true},            // Italian
		{letters: "åäöéü", sure: "å"},                          // Swedish, Finnish
		{letters: "æøåéü", sure: "å"},                          // Danish, Norwegian
		{letters: "éëïöüèáó", needs: "éë", sure: "ï"},          // Dutch
		{letters: "àèéíïòóúüç", needs: "éí", sure: "à"},        // Catalan
	}
}

// A westernCount is what speaks for and against Windows-1252.
type westernCount struct {
	letters  map[rune]int // in lower case
	all      int          // letters
	inWords  int          // letters with an ASCII letter at their side
	within   int          // letters before an ASCII letter
	adjacent int          // letters with another one at their side: the rule in encodings of two bytes
	marks    int
	bad      int // what text in Windows-1252 does not have, at least not there
}

// western says that text looks like one of the languages of Windows-1252: single letters beyond ASCII within words of
// ASCII letters, all of them of one language, and typographic marks where they belong.
func western(text []byte) bool {
	c := westernCount{letters: map[rune]int{}}
	for i, b := range text {
		if b >= utf8.RuneSelf {
			c.add(text, i)
		}
	}
	if c.all+c.marks < 2 || c.bad*50 > c.all+c.marks || c.adjacent*10 > c.all*6 || c.inWords*2 < c.all {
		return false
	}
	for _, known := range westernLanguages() {
		if c.fits(known) {
			return true
		}
	}
	return false
}

func (c *westernCount) add(text []byte, i int) {
	before, after := byte(' '), byte(' ')
	if i > 0 {
		before = text[i-1]
	}
	if i+1 < len(text) {
		after = text[i+1]
	}
	r := windows1252.page().DecodeByte(text[i])
	if !unicode.IsLetter(r) || strings.ContainsRune("ªºµ", r) {
		if mark, good := westernMark(r, before, after); !good {
			c.bad++
		} else if mark {
			c.marks++
		}
		return
	}
	c.all++
	c.letters[unicode.ToLower(r)]++
	if asciiLetter(before) || asciiLetter(after) {
		c.inWords++
	}
	if asciiLetter(after) {
		c.within++
	}
	if before >= 0xc0 || after >= 0xc0 {
		c.adjacent++
	}
	if unicode.IsUpper(r) && 'a' <= before && before <= 'z' || r == 'œ' && after != 'u' {
		c.bad++
	}
}

// westernMark says whether r between these bytes speaks for Windows-1252, and whether it may be there at all.
func westernMark(r rune, before, after byte) (mark, good bool) {
	left, right := asciiLetter(before) || digit(before), asciiLetter(after) || digit(after)
	switch r {
	case '\u00a0', '’', '‘', '\u00ad', '·': // where each may be
		return asciiLetter(before) && asciiLetter(after), true
	case '“', '„', '«', '¿', '¡':
		return true, !left && right
	case '”', '»':
		return true, !right && after < utf8.RuneSelf && before > ' '
	case '…':
		return true, left && !right && after < utf8.RuneSelf
	case '–', '—', '×':
		return true, before == ' ' && after == ' ' || digit(before) && digit(after)
	case '°', '²', '³', '½', '¼', '¾', 'º', 'ª':
		return true, (digit(before) || before == ' ' && digit(after)) && after < utf8.RuneSelf
	case '±', '§', '£', '€', '©', '®', '™', 'µ', '•':
		return true, before < utf8.RuneSelf && after < utf8.RuneSelf && (!asciiLetter(before) || !right)
	}
	return false, false
}

func asciiLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func digit(b byte) bool { return '0' <= b && b <= '9' }

// fits says that the letters are those of a language. One letter that other tables read as another is too little, if it
// is not one that those hardly use.
func (c *westernCount) fits(l westernLanguage) bool {
	other, kinds, sure, needed := 0, 0, false, l.needs == ""
	for r, n := range c.letters {
		needed = needed || strings.ContainsRune(l.needs, r)
		switch {
		case !strings.ContainsRune(l.letters, r):
			other += n
		case !strings.ContainsRune(westernShared, r):
			kinds++
			sure = sure || strings.ContainsRune(l.sure, r)
		}
	}
	if other*50 > c.all || l.atEnd && c.within*10 > c.all {
		return false
	}
	return kinds == 0 || needed && (sure || kinds > 1)
}
