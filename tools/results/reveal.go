package results

import (
	"fmt"
	"strings"
	"unicode"
)

const (
	softHyphen = '\u00ad'
	nonJoiner  = '\u200c'
	joiner     = '\u200d'
)

// invisible are characters without a form of their own that change how others are read: bidirectional controls,
// spaces of no width, separators that break lines in some programs, annotations, tags.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1},
		{Lo: 0x061c, Hi: 0x061c, Stride: 1},
		{Lo: 0x180e, Hi: 0x180e, Stride: 1},
		{Lo: 0x200b, Hi: 0x200b, Stride: 1},
		{Lo: 0x200e, Hi: 0x200f, Stride: 1},
		{Lo: 0x2028, Hi: 0x202e, Stride: 1},
		{Lo: 0x2060, Hi: 0x206f, Stride: 1},
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
		{Lo: 0xfff9, Hi: 0xfffb, Stride: 1},
	},
	R32:         []unicode.Range32{{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}},
	LatinOffset: 1,
}

// isControl holds for C0 but tab and line feed, DEL and C1.
func isControl(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || 0x7f <= r && r <= 0x9f }

// alwaysShown holds for characters that are shown as an escape wherever they stand.
func alwaysShown(r rune) bool {
	return isControl(r) || unicode.Is(invisible, r) || unicode.Is(unicode.Noncharacter_Code_Point, r)
}

// reveal shows what cannot be seen and counts it. text is valid UTF-8. Whether a character is shown depends on its
// neighbours in text, never on what became of them, so that a second time nothing is left to show.
func reveal(text string) (string, int) {
	if !strings.ContainsFunc(text, suspect) {
		return text, 0
	}
	var b strings.Builder
	runes := []rune(text)
	n := 0
	for i, r := range runes {
		if !alwaysShown(r) && !outOfPlace(runes, i) {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString(escape(r))
	}
	return b.String(), n
}

// suspect holds for every character that could be shown as an escape, and some others. It is what nearly all characters
// of a text cost.
func suspect(r rune) bool {
	switch {
	case r < 0x180b:
		return isControl(r) || r == softHyphen || r == 0x061c
	case r < 0xfdd0:
		return r <= 0x180f || 0x200b <= r && r <= 0x206f
	}
	return r < 0x10000 || r >= 0xe0000 || r&0xfffe == 0xfffe
}

// outOfPlace holds for a variation selector that follows another, and for a joiner that joins nothing.
func outOfPlace(runes []rune, i int) bool {
	switch r := runes[i]; {
	case r == joiner || r == nonJoiner:
		return i == 0 || i+1 == len(runes) || !joinable(runes[i-1]) || !joinable(runes[i+1]) ||
			shownSelector(runes, i-1)
	case unicode.Is(unicode.Variation_Selector, r):
		return shownSelector(runes, i)
	}
	return false
}

func shownSelector(runes []rune, i int) bool {
	return i > 0 && unicode.Is(unicode.Variation_Selector, runes[i]) &&
		unicode.Is(unicode.Variation_Selector, runes[i-1])
}

// joinable holds for what a joiner may stand beside: emoji, Indic and Arabic letters, anything above ASCII that stays.
func joinable(r rune) bool {
	return r > unicode.MaxASCII && r != joiner && r != nonJoiner && !alwaysShown(r)
}

// escape writes r as edit_file understands it, too.
func escape(r rune) string {
	switch {
	case isControl(r):
		return fmt.Sprintf(`\x%02x`, r)
	case r > 0xffff:
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
