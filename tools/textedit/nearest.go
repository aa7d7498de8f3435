package textedit

import (
	"bytes"
	"unicode"
)

const (
	// nearLines is how many lines of the content are compared.
	nearLines = 20_000
	// nearWords is how many different words of the old text are looked for.
	nearWords = 200
)

// nearest shows the lines that share the rarest words with old.
func nearest(content []byte, old string) string {
	seen := map[string]int{} // word of old -> lines of content that hold it
	for word := range words([]byte(old)) {
		if len(seen) == nearWords {
			break
		}
		seen[string(word)] = 0
	}
	if len(seen) == 0 {
		return ""
	}
	var shared [][]string // per line, the words of old in it, each once
	for line := range bytes.Lines(content) {
		if len(shared) == nearLines {
			break
		}
		var here []string
		for word := range words(line) {
			if _, ok := seen[string(word)]; ok && !has(here, word) {
				here = append(here, string(word))
				seen[string(word)]++
			}
		}
		shared = append(shared, here)
	}
	height := min(1+bytes.Count(bytes.TrimSuffix([]byte(old), newline), newline), hintLines)
	from := best(shared, seen, height)
	if from < 0 {
		return ""
	}
	return "The nearest lines are:\n" + show(content, from+1, from+height)
}

// best returns the first of the height lines that together score most, -1 if no line shares a word. A word counts the
// more the fewer lines have it.
func best(shared [][]string, lines map[string]int, height int) int {
	scores := make([]int, len(shared))
	for i, here := range shared {
		for _, word := range here {
			scores[i] += 1_000_000 / lines[word]
		}
	}
	from, top, sum := -1, 0, 0
	for i, score := range scores {
		sum += score
		if i >= height {
			sum -= scores[i-height]
		}
		if sum > top {
			from, top = max(0, i-height+1), sum
		}
	}
	return from
}

func has(words []string, word []byte) bool {
	for _, w := range words {
		if w == string(word) {
			return true
		}
	}
	return false
}

// words yields the runs of letters, digits and underscores of text that are longer than one byte.
func words(text []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for word := range bytes.FieldsFuncSeq(text, func(r rune) bool {
			return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			if len(word) > 1 && !yield(word) {
				return
			}
		}
	}
}
