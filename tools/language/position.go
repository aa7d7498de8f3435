package language

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"codehand/tools/lsp"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// Position is the place in a file that a call of a tool means by a line, from 1, and a character or, if that is 0, a
// name. The error is a refusal.
func Position(name string, doc lsp.Document, n, character int, query string) (p lsp.Position, err error) {
	line, ok := lsp.Line(doc.Text, n-1)
	if !ok {
		return p, tool.Invalid(name, fmt.Sprintf("\"line\" %d is past the end of the file", n))
	}
	p = lsp.Position{Line: n - 1, Character: character - 1}
	if character == 0 {
		at := wordIn(line, query)
		if at < 0 {
			return p, tool.Invalid(name, fmt.Sprintf("line %d does not contain %q; it is: %s%s", n,
				wording.Clip(query, 100), wording.LineOf(strings.TrimSpace(line), 200), nearest(doc.Text, n, query)))
		}
		p.Character = lsp.Units(line[:at])
	}
	if length := lsp.Units(line); p.Character > length {
		return p, tool.Invalid(name, fmt.Sprintf("\"character\" %d is past the end of line %d, which has %d; it is: %s",
			character, n, length, wording.LineOf(strings.TrimSpace(line), 200)))
	}
	return p, nil
}

// maxAway is how many lines away from the one that a call names a name is looked for.
const maxAway = 20

// nearest says which line around line n, from 1, has a name; "": none has. Of two that are as near it is the later one.
func nearest(text string, n int, name string) string {
	for away := 1; away <= maxAway; away++ {
		for _, i := range []int{n + away, n - away} {
			if line, ok := lsp.Line(text, i-1); ok && wordIn(line, name) >= 0 {
				return fmt.Sprintf("; the nearest line that does is line %d: %s", i,
					wording.LineOf(strings.TrimSpace(line), 200))
			}
		}
	}
	return ""
}

// wordIn is where a line has a name as a word of its own, or else anywhere; -1: nowhere.
func wordIn(line, name string) int {
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for from := 0; ; {
		i := strings.Index(line[from:], name)
		if i < 0 {
			return strings.Index(line, name)
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(line[:i])
		after, _ := utf8.DecodeRuneInString(line[i+len(name):])
		if !word(before) && !word(after) {
			return i
		}
		from = i + 1
	}
}
