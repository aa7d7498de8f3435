package config

import (
	"fmt"
	"strings"
)

// maxTypos is how many letters a name may differ in from the one that was meant.
const maxTypos = 2

// Nearest returns the one of known that word is probably a misspelling of; "": none comes near. Letter case does not
// count, and the first of several equally near ones wins.
func Nearest(word string, known []string) string {
	word = strings.ToLower(strings.TrimSpace(word))
	best, least := "", min(maxTypos, len(word)/2)+1
	for _, name := range known {
		if d := typos(word, strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, name := range known { // "perm" for permissions, "timeout" for shell.default_timeout_ms is none
		if strings.HasPrefix(strings.ToLower(name), word) {
			return name
		}
	}
	return ""
}

// typos counts the letters to insert, delete, replace or swap with their neighbour between two words, as far as they
// are no more than maxTypos.
func typos(a, b string) int {
	if d := len(a) - len(b); d > maxTypos || -d > maxTypos {
		return maxTypos + 1
	}
	var above []int // the row before the last
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], above[j-1]+1)
			}
		}
		above, last = last, row
	}
	return last[len(b)]
}

// meant is the end of a sentence about a word that is not known; "": nothing known comes near.
func meant(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}
