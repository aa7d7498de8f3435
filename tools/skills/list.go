package skills

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How long a list is at most, in characters.
const (
	MaxLine = 1536 // of one skill, also of what other lists say about it
	maxList = 8000
)

// List says what skills there are, one line each: "name: description - when to use". A line has at most 1,536
// characters and all together 8,000; when they do not fit, descriptions are shortened evenly, and names always kept.
// Which skills a reader may know is the caller's choice.
func List(skills []Skill) string {
	room := maxList
	said := make([]string, len(skills))
	lengths := make([]int, len(skills))
	for i, s := range skills {
		said[i] = cut(about(s), MaxLine-len(": ")-utf8.RuneCountInString(s.Name))
		lengths[i] = utf8.RuneCountInString(said[i])
		room -= utf8.RuneCountInString(s.Name) + len(": \n")
	}
	limit := evenly(lengths, room)
	var b strings.Builder
	for i, s := range skills {
		b.WriteString(s.Name)
		if short := cut(said[i], limit); short != "" {
			b.WriteString(": " + short)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// about is what a list says about a skill, on one line.
func about(s Skill) string {
	says := strings.Join(strings.Fields(s.Description), " ")
	when := strings.Join(strings.Fields(s.WhenToUse), " ")
	if says != "" && when != "" {
		says += " - "
	}
	return says + when
}

// evenly returns the largest length to which all must be cut so that their sum fits into room: those that are shorter
// leave what they do not need to the others.
func evenly(lengths []int, room int) int {
	sorted := slices.Sorted(slices.Values(lengths))
	for i, n := range sorted {
		if n*(len(sorted)-i) > room {
			return max(0, room/(len(sorted)-i))
		}
		room -= n
	}
	return MaxLine
}
