package results

import "strings"

// Line is s on one line, with runs of white space as one space, cut to n characters: the last of them is then "…".
func Line(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
