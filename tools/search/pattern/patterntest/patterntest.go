// Package patterntest has the patterns and the text on which matchers of regular expressions were found to differ, for the
// tests of search/pattern and of search.
package patterntest

import (
	"math/rand/v2"
	"strings"
)

// Patterns are those on which matchers were found to differ. Where ripgrep needs another spelling, it follows.
var Patterns = []string{
	"return", "->", "e", "é", "日本", `\.`, `a.b[0]`, `(?i)todo`, `(?i)straße`, `(?i)ÉTÉ`, `(?i)größe`, `(?i)class`, `(?i:fix)me|XXX`, `FIXME|XXX|HACK`,
	`a|b|c|d|e|f|g|h|i|j`, `foo(bar|baz)?qux|ReadAll(At)?`, `(read|write|open|close)(file|dir|lock)`, `^func \(\w+ \*?\w+\) (Read|Write)\(`, `^$`, `^\s+$`, `\s$`,
	`^.{40,}$`, `[A-Za-z]{12}`, `\w+_RESUME`, `\w{3}\s+\w{3}`, `\bif\b`, `\bt\b`, `\bread\b.*\bwrite\b`, `\Bing\b`, `(?-u)\bt\b`, `(?-u)\w{4}`, `\p{Greek}`, `\p{Han}{2}`,
	`\p{Lu}\p{Ll}+\p{Lu}`, `[^\x00-\x7F]`, `\d{2,}`, `[^\d\s\w]{2}`, `0x[0-9a-fA-F]{2}\b`, `"[^"]*\\n"`, `'[^']{1}'`, `\(\)\s*\{`, `/\*.*\*/`, `a.*b.*c`, `(a|ab)(c|bcd)(d*)`,
	`x*`, `(?:)`, `\x41\x42`, `\u00e9|\x{e9}`, `[[:upper:]]{3}`, `[[:^alpha:]]{8}`, `(?P<k>key|val)ue`, `(?s)a.b`, `(?x) ret urn \  0`, `\Astatic`, `[\w.+-]+@[\w-]+\.[\w.-]+`,
	`\w+\s*:=\s*range\b`, `\S{20}`, `[a-z_]*e[a-z_]{4}z`, `((a+)b?)+c{2}`, `.`, `[^a]`, `(?i)[^a-z]{4}`, `\W{5}`, `[a-z&&[^aeiou]]{4}`, `[\w--\d]{5}`, `[a[bc]]{3}`, `(?i)k`, `(?i)s`,
	`(?i)ask`, `(?i)kiss`, `\S+(?i)class`, `[^k]{3}$`, `\p{L}+\P{L}+`, `(?i)\p{Lu}{3}`, `\B-\B`, `\b`, `\B`,
}

// Awkward makes lines of all that is awkward: broken UTF-8, folds of other length, marks, line ends.
func Awkward() string {
	var b strings.Builder
	pieces := []string{"a", "k", "s", "ſ", "ß", "\u212a", "é", "É", "日本", "内核", "1", "٣", "_", "-", "\u0301", "\u00a0", "\u200d", "😀", "\t", " ", "\xff", "\xc3", "\xe6\x97", "\xf0\x9f\x98",
		"\xed\xa0\x80", "class", "Maſke", "TASK", "Größe", "GRÖSSE", "ΑΒΓ", "été", "ÉTÉ", "x", "foo", "todo", "\ufffd", "()", "if", "t", "ing"}
	seed := uint32(7)
	for range 3000 {
		for range 1 + seed>>3%9 {
			seed = seed*1664525 + 1013904223
			b.WriteString(pieces[seed>>8%uint32(len(pieces))])
		}
		seed = seed*1664525 + 1013904223
		b.WriteString([]string{"\n", "\n", "\n", "\r\n"}[seed>>9%4])
	}
	return b.String()
}

// atoms are what random patterns are made of: letters with odd cases, classes, edges.
var atoms = []string{"a", "k", "s", "é", "ſ", "ß", "日", "1", "_", "-", `\w`, `\W`, `\d`, `\D`, `\s`, `\S`, `\b`, `\B`, ".", "[^a]", "[^é]", `[\w-]`, `[^\w]`, `[^\s\d]`, "^", "$", `\pL`, `\PL`, `\p{Lu}`, "[[:alpha:]]", "(?i:k)", "(?i:s)", "(?i:ß)"}

// pieces are what random texts are made of: the same letters, and bytes that are no UTF-8.
var pieces = []string{"a", "k", "s", "é", "ſ", "ß", "日", "1", "_", "-", "\u00a0", "\u212a", "\u0301", "٣", "😀", "\t", " ", "\r", "\xff", "\xc3", "\xe6\x97", "\xf0\x9f\x98", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"}

// Random makes a pattern of parts that are nested depth deep.
func Random(r *rand.Rand, depth int) string {
	if depth == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	switch r.IntN(5) {
	case 0:
		return Random(r, depth-1) + "|" + Random(r, depth-1)
	case 1:
		return "(?:" + Random(r, depth-1) + ")" + []string{"*", "+", "?", "{1,3}", "{2}", "*?", "{3,}"}[r.IntN(7)]
	case 2, 3:
		return Random(r, depth-1) + Random(r, depth-1)
	}
	return atoms[r.IntN(len(atoms))]
}

// RandomText makes lines of up to 13 pieces.
func RandomText(r *rand.Rand, lines int) []byte {
	var b []byte
	for range lines {
		for range r.IntN(14) {
			b = append(b, pieces[r.IntN(len(pieces))]...)
		}
		b = append(b, '\n')
	}
	return b
}
