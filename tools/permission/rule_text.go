package permission

import "strings"

// A glob is a text with stars, each of which stands for any characters. `\*` is a star that stands for itself.
type glob struct {
	pieces []string // what stands between the stars; one: there is no star
	short  []string // pieces without the final ` *`, which may be missing; nil: there is none
}

// newGlob reads a pattern. A final `:*` means ` *`.
func newGlob(text string) *glob {
	g := &glob{}
	var piece strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == '*':
			i++
			piece.WriteByte('*')
		case text[i] == '*' && i > 0 && i == len(text)-1 && text[i-1] == ':':
			before := piece.String()
			g.pieces = append(g.pieces, before[:len(before)-1]+" ")
			piece.Reset()
		case text[i] == '*':
			g.pieces = append(g.pieces, piece.String())
			piece.Reset()
		default:
			piece.WriteByte(text[i])
		}
	}
	g.pieces = append(g.pieces, piece.String())
	if n := len(g.pieces) - 1; n > 0 && g.pieces[n] == "" {
		if last, ok := strings.CutSuffix(g.pieces[n-1], " "); ok && (last != "" || n > 1) {
			g.short = append(append(g.short, g.pieces[:n-1]...), last)
		}
	}
	return g
}

// exact says that there is no star.
func (g *glob) exact() bool { return len(g.pieces) == 1 }

// spells says whether everything in lead stands before the first star, as whole words.
func (g *glob) spells(lead string) bool {
	rest, ok := strings.CutPrefix(g.pieces[0], lead)
	return ok && (lead == "" || rest == "" || rest[0] == ' ')
}

func (g *glob) match(text string) bool {
	return wildcard(g.pieces, text) || g.short != nil && wildcard(g.short, text)
}

// wildcard compares a text with pieces that have anything between them. The first place of each piece leaves the most
// to the others, so nothing is tried twice.
func wildcard(pieces []string, text string) bool {
	last := len(pieces) - 1
	if last == 0 {
		return text == pieces[0]
	}
	if !strings.HasPrefix(text, pieces[0]) {
		return false
	}
	text = text[len(pieces[0]):]
	for _, piece := range pieces[1:last] {
		i := strings.Index(text, piece)
		if i < 0 {
			return false
		}
		text = text[i+len(piece):]
	}
	return strings.HasSuffix(text, pieces[last])
}

// escapeText writes a text so that newGlob reads it as itself.
func escapeText(text string) string { return strings.ReplaceAll(text, "*", `\*`) }
