package search

import "unicode/utf8"

// window chooses the part of a line that is shown: all of it, or maxRunes around a place, a fourth of them before it.
// It is cut between runes.
func window(text []byte, at, maxRunes int) (from, to int, cut bool) {
	if len(text) <= maxRunes || utf8.RuneCount(text) <= maxRunes {
		return 0, len(text), false
	}
	at = min(at, len(text))
	from, before := back(text, at, maxRunes/4)
	to, behind := forth(text, at, maxRunes-before)
	from, _ = back(text, from, maxRunes-before-behind)
	return from, to, true
}

// back goes up to n runes to the front.
func back(text []byte, at, n int) (to, runes int) {
	for at > 0 && runes < n {
		_, size := utf8.DecodeLastRune(text[:at])
		at -= size
		runes++
	}
	return at, runes
}

// forth goes up to n runes to the end.
func forth(text []byte, at, n int) (to, runes int) {
	for at < len(text) && runes < n {
		_, size := utf8.DecodeRune(text[at:])
		at += size
		runes++
	}
	return at, runes
}
