package textedit

import (
	"bytes"
	"iter"
	"strings"
)

// A target is old text that was found.
type target struct {
	level  Level
	view   view
	needle []byte // Old as the view spells it
	at     int    // where the first match begins in the view
	old    string // Old with line ends folded, escapes decoded, quotes as they came
	add    string // New, likewise
	prose  bool
}

// find looks for e.Old at each level in turn. fits says of a first match whether that or a later one of the level will
// do; nil: it does.
func find(content []byte, e Edit, fits func(*target) bool) (target, bool) {
	if fits == nil {
		fits = func(*target) bool { return true }
	}
	t := target{old: foldEnds(e.Old), add: foldEnds(e.New), prose: e.Prose}
	if t.findExact(content) && fits(&t) {
		return t, true
	}
	if t.findQuotes(content, e.Old) && fits(&t) {
		return t, true
	}
	if old, known := decodeEscapes(e.Old, nil); len(known) > 0 {
		add, _ := decodeEscapes(e.New, known)
		t.level, t.old, t.add = Escapes, foldEnds(old), foldEnds(add)
		if t.findExact(content) && fits(&t) {
			return t, true
		}
	}
	old := expandMarkers(foldEnds(e.Old))
	if !e.Markers || old == foldEnds(e.Old) {
		return t, false
	}
	t.level, t.old, t.add = Markers, old, expandMarkers(foldEnds(e.New))
	return t, t.findExact(content) && fits(&t)
}

func (t *target) findExact(content []byte) bool {
	if unmatchable(content, t.old) {
		return false
	}
	t.view, t.needle = plainView(content, t.old)
	t.at = bytes.Index(t.view.text, t.needle)
	return t.at >= 0
}

func (t *target) findQuotes(content []byte, old string) bool {
	needle := foldView([]byte(old), 0, true).text
	if !bytes.ContainsAny(needle, `'"`) || unmatchable(content, t.old) {
		return false // without a quote there is nothing that this level could find
	}
	from := len(mark(content))
	v := foldView(content[from:], from, true)
	at := bytes.Index(v.text, needle)
	if at < 0 {
		return false
	}
	t.level, t.view, t.needle, t.at = Quotes, v, needle, at
	return true
}

// one is the first match.
func (t *target) one() iter.Seq[int] {
	return func(yield func(int) bool) { yield(t.at) }
}

// span returns the bytes of the file that a match at a place of the view covers.
func (t *target) span(at int) (from, to int) {
	return t.view.raw(at), t.view.raw(at + len(t.needle))
}

// ambiguous returns nil if the first match is the only one.
func (t *target) ambiguous(content []byte) *AmbiguousError {
	text := t.view.text
	if !bytes.Contains(text[t.at+1:], t.needle) {
		return nil
	}
	e := &AmbiguousError{Level: t.level}
	line, counted, before := 1, 0, -len(t.needle)
	for at := range overlapping(text, t.needle, t.at) {
		if e.Count < maxLines {
			line += bytes.Count(text[counted:at], newline)
			counted = at
			e.Lines = append(e.Lines, line)
		}
		e.Overlapping = e.Overlapping || at < before+len(t.needle)
		before = at
		e.Count++
	}
	from, to := t.span(t.at)
	e.Spelling = cut(strings.ToValidUTF8(string(content[from:to]), "\ufffd"), maxShown)
	return e
}

// apart yields where needle begins in text, from first on, left to right and without overlap. At first it does begin.
func apart(text, needle []byte, first int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at, next := first, 0; next >= 0; at += next {
			if !yield(at) {
				return
			}
			at += len(needle)
			next = bytes.Index(text[at:], needle)
		}
	}
}

// overlapping yields every place where needle begins in text, from first on, where it does begin. A needle that can
// overlap itself is followed with the table of Knuth, Morris and Pratt: comparing it anew at every place would take the
// product of both lengths.
func overlapping(text, needle []byte, first int) iter.Seq[int] {
	borders := bordersOf(needle)
	if borders[len(needle)-1] == 0 {
		return apart(text, needle, first)
	}
	return func(yield func(int) bool) {
		have := 0
		for i := first; i < len(text); i++ {
			for have > 0 && text[i] != needle[have] {
				have = int(borders[have-1])
			}
			if text[i] == needle[have] {
				have++
			}
			if have == len(needle) {
				if !yield(i + 1 - len(needle)) {
					return
				}
				have = int(borders[have-1])
			}
		}
	}
}

// bordersOf returns, for each beginning of needle, the length of the longest shorter beginning that also ends it.
func bordersOf(needle []byte) []int32 {
	borders := make([]int32, len(needle))
	have := int32(0)
	for i := 1; i < len(needle); i++ {
		for have > 0 && needle[i] != needle[have] {
			have = borders[have-1]
		}
		if needle[i] == needle[have] {
			have++
		}
		borders[i] = have
	}
	return borders
}

func count(places iter.Seq[int]) int {
	n := 0
	for range places {
		n++
	}
	return n
}

// cut shortens s to a number of runes.
func cut(s string, runes int) string {
	for i := range s {
		if runes == 0 {
			return s[:i] + "…"
		}
		runes--
	}
	return s
}
