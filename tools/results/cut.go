package results

import (
	"fmt"
	"strings"
)

// CutMiddle cuts a text that a person reads to n characters, but never to fewer than 100: the end of a command is as
// important as its beginning. It says what is left out.
func CutMiddle(text string, n int) string {
	n = max(n, 100)
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	const said = 60 // room for the words
	keep := n - said
	head, tail := keep*2/3, keep-keep*2/3
	return fmt.Sprintf("%s\n[%d characters in the middle are not shown]\n%s", string(r[:head]), len(r)-head-tail,
		string(r[len(r)-tail:]))
}

// Line shows a text as one line of at most n characters, the last of which says that there was more.
func Line(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
