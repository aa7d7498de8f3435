package permission

import (
	"slices"
	"strings"

	"codehand/tools/bash"
)

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

// meets says whether there is a text that match accepts among those that an open form stands for (bash.Part.Open).
func (g *glob) meets(open string) bool {
	return overlap(g.pieces, open) || g.short != nil && overlap(g.short, open)
}

// maxOverlap is how long an open form is that is compared, in bytes; a longer one may be anything.
const maxOverlap = 10_000

// overlap says whether pieces with anything between them and an open form have a text in common. at[i] says that the
// first i bytes of the pieces may stand for what was read of the form.
func overlap(pieces []string, open string) bool {
	if len(open) > maxOverlap {
		return true
	}
	pattern := strings.Join(pieces, "\xff") // no byte of a text
	at := make([]bool, len(pattern)+1)
	skip := func(at []bool) { // a star may stand for nothing
		for i := range pattern {
			at[i+1] = at[i+1] || at[i] && pattern[i] == '\xff'
		}
	}
	anything := func(at []bool) {
		if first := slices.Index(at, true); first >= 0 {
			for i := range at[first:] {
				at[first+i] = true
			}
		}
	}
	at[0] = true
	skip(at)
	lead := true // nothing was read but expansions
	for n := 0; n < len(open); n++ {
		// an expansion that is empty leaves no blank
		empty := open[n] == bash.Any && lead && n+1 < len(open) && open[n+1] == ' ' ||
			open[n] == ' ' && n+1 < len(open) && open[n+1] == bash.Any
		before := at
		next := make([]bool, len(at))
		for i := range pattern {
			switch {
			case open[n] == bash.Any && at[i], pattern[i] == '\xff' && at[i]:
				next[i] = true
			case at[i] && pattern[i] == open[n]:
				next[i+1] = true
			}
		}
		next[len(pattern)] = next[len(pattern)] || open[n] == bash.Any && at[len(pattern)]
		if at = next; open[n] == bash.Any {
			anything(at)
		}
		if empty {
			if n++; open[n] == bash.Any {
				anything(at)
			}
			for i := range at {
				at[i] = at[i] || before[i]
			}
		}
		skip(at)
		lead = lead && open[n] == bash.Any || lead && empty
	}
	return at[len(pattern)]
}

// MayRun says whether a part of a command may be one that the text of a rule is about, since it has words which only
// the shell knows.
func MayRun(text string, part bash.Part) bool {
	return len(part.Open) > 0 && slices.ContainsFunc(part.Open, newGlob(text).meets)
}

// escapeText writes a text so that newGlob reads it as itself.
func escapeText(text string) string { return strings.ReplaceAll(text, "*", `\*`) }
