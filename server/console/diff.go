package console

import (
	"strconv"
	"strings"
	"unicode"
)

// A diffLine is one line of a diff.
type diffLine struct {
	Kind  string
	Parts []diffPart
	Hunk  string // names the hunk that begins here, where it can be taken back by itself
}

// A diffPart is a run of a line that stands in its counterpart as well, or that does not.
type diffPart struct {
	Text   string
	Marked bool
}

// maxMarked is how many bytes a line has at most in which words are marked.
const maxMarked = 4_000

// lines are those of a text with diffs in it. Where as many lines were removed as came in their place, the words in
// which two of them differ are marked.
func lines(text string) (all []diffLine) {
	minus := 0 // where the removed lines begin that stand last
	plus := 0  // where the lines in their place begin
	mark := func() {
		if old, now := all[minus:plus], all[plus:]; plus > minus && len(old) == len(now) {
			for i := range old {
				markWords(&old[i], &now[i])
			}
		}
	}
	was := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		kind := ""
		switch {
		case strings.HasPrefix(line, "@@"):
			kind = "hunk"
		case strings.HasPrefix(line, "+"):
			kind = "plus"
		case strings.HasPrefix(line, "-"):
			kind = "minus"
		}
		if was == "plus" && kind != "plus" {
			mark()
		}
		if kind == "minus" && was != "minus" {
			minus = len(all)
		}
		if kind != "minus" && kind != "plus" {
			minus = len(all) + 1
		}
		if kind != "plus" {
			plus = len(all) + 1
		}
		all = append(all, diffLine{Kind: kind, Parts: []diffPart{{Text: line}}})
		was = kind
	}
	if was == "plus" {
		mark()
	}
	return all
}

// hunkNames names each hunk of a change; "": its head is none.
func hunkNames(all []diffLine) (names []string) {
	for _, l := range all {
		if l.Kind != "hunk" {
			continue
		}
		name := strconv.Itoa(len(names)+1) + " " + l.Parts[0].Text
		if !hunkName().MatchString(name) {
			name = ""
		}
		names = append(names, name)
	}
	return names
}

// numberHunks names the hunks of a change in its lines, if there are several.
func numberHunks(all []diffLine) {
	names := hunkNames(all)
	if len(names) < 2 {
		return
	}
	n := 0
	for i := range all {
		if all[i].Kind == "hunk" {
			all[i].Hunk = names[n]
			n++
		}
	}
}

// markWords marks what differs between two lines, in whole words. Lines that have little in common are left alone.
func markWords(old, now *diffLine) {
	a, b := old.Parts[0].Text[1:], now.Parts[0].Text[1:]
	if len(a) > maxMarked || len(b) > maxMarked {
		return
	}
	x, y := []rune(a), []rune(b)
	head := 0
	for head < min(len(x), len(y)) && x[head] == y[head] {
		head++
	}
	for head > 0 && inWord(x, head) && inWord(y, head) {
		head--
	}
	tail := 0
	for tail < min(len(x), len(y))-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	for tail > 0 && inWord(x, len(x)-tail) && inWord(y, len(y)-tail) {
		tail--
	}
	if 3*(head+tail) < max(len(x), len(y)) {
		return
	}
	old.Parts, now.Parts = marked("-", x, head, tail), marked("+", y, head, tail)
}

// inWord says whether a word goes on over the place before text[at].
func inWord(text []rune, at int) bool {
	return at > 0 && at < len(text) && wordy(text[at-1]) && wordy(text[at])
}

func wordy(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func marked(sign string, text []rune, head, tail int) []diffPart {
	return []diffPart{
		{sign + string(text[:head]), false}, {string(text[head : len(text)-tail]), true},
		{string(text[len(text)-tail:]), false},
	}
}
