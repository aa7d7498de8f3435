package textedit

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// restyle gives the quotes of add the spelling of the file, after old matched found only with its quotes made straight.
//
// If old and add have as many single and as many double quotes, the k-th of a kind is spelled as the k-th in found.
// Otherwise only those that stand where old and add are the same, at the beginning or at the end: a quote that the file
// did not have stays as it came. In prose such a quote, if straight, becomes typographic where found is.
func restyle(found, old, add string, prose bool) string {
	had, were, are := quotesIn(found), quotesIn(old), quotesIn(add)
	if len(are) == 0 || len(had) != len(were) {
		return add
	}
	spelled := make([]rune, len(are)) // 0: as it came
	if singles(were) == singles(are) && len(were) == len(are) {
		for _, kind := range `'"` {
			var known []rune
			for _, q := range had {
				if straight(q) == kind {
					known = append(known, q)
				}
			}
			for i, q := range are {
				if straight(q) == kind {
					spelled[i], known = known[0], known[1:]
				}
			}
		}
		return respell(add, spelled, nil)
	}
	head, tail := sameEnds(old, add)
	copy(spelled, had[:len(quotesIn(old[:head]))])
	n := len(quotesIn(old[len(old)-tail:]))
	copy(spelled[len(are)-n:], had[len(had)-n:])
	var curly []rune
	if prose {
		curly = had
	}
	return respell(add, spelled, curly)
}

// respell writes the k-th quote of s as spelled[k], unless that is 0. Then a straight quote becomes a typographic one
// if curly holds a typographic one of its kind.
func respell(s string, spelled, curly []rune) string {
	var b strings.Builder
	single, double := strings.ContainsAny(string(curly), "‘’"), strings.ContainsAny(string(curly), "“”")
	k, before := 0, rune(0)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if straight(r) == 0 {
			b.WriteString(s[i : i+size])
			before, i = r, i+size
			continue
		}
		after, _ := utf8.DecodeRuneInString(s[i+size:])
		switch {
		case spelled[k] != 0:
			b.WriteRune(spelled[k])
		case r == '\'' && single:
			b.WriteRune(curl(before, after, '‘', '’', true))
		case r == '"' && double:
			b.WriteRune(curl(before, after, '“', '”', false))
		default:
			b.WriteRune(r)
		}
		before, i, k = r, i+size, k+1
	}
	return b.String()
}

// curl chooses the form of a quote by its neighbours; before is 0 at the start.
func curl(before, after, opening, closing rune, apostrophe bool) rune {
	switch {
	case apostrophe && unicode.IsLetter(before) && unicode.IsLetter(after):
		return closing
	case before == 0 || unicode.IsSpace(before) || strings.ContainsRune("([{-–—", before):
		return opening
	}
	return closing
}

// straight returns the straight quote that r counts as, or 0.
func straight(r rune) rune {
	switch r {
	case '\'', '‘', '’', '′':
		return '\''
	case '"', '“', '”', '″':
		return '"'
	}
	return 0
}

// quotesIn returns the quotes of s, of both kinds, in order.
func quotesIn(s string) []rune {
	var quotes []rune
	for _, r := range s {
		if straight(r) != 0 {
			quotes = append(quotes, r)
		}
	}
	return quotes
}

func singles(quotes []rune) int {
	n := 0
	for _, q := range quotes {
		if straight(q) == '\'' {
			n++
		}
	}
	return n
}

// sameEnds returns how many bytes a and b share at their beginnings and at their ends, in whole runes. The two do not
// overlap in either string.
func sameEnds(a, b string) (head, tail int) {
	for head < min(len(a), len(b)) {
		r, size := utf8.DecodeRuneInString(a[head:])
		// a byte that is no character looks like U+FFFD
		if q, n := utf8.DecodeRuneInString(b[head:]); q != r || n != size {
			break
		}
		head += size
	}
	for tail < min(len(a), len(b))-head {
		r, size := utf8.DecodeLastRuneInString(a[head : len(a)-tail])
		if q, n := utf8.DecodeLastRuneInString(b[head : len(b)-tail]); q != r || n != size {
			break
		}
		tail += size
	}
	return head, tail
}
