package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraced bounds the words that one word with braces stands for, and the groups that are looked at for a comma. A
// word with more is left as written, and a person must decide about the command.
const maxBraced = 64

// Unquoted braces and commas while a word is read. A text that contains these control characters is never proved, and
// at worst looks like more words than it is.
const (
	braceOpen  = '\x01'
	braceComma = '\x02'
	braceClose = '\x03'
)

func hasBraces(w *syntax.Word) bool {
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			return true
		}
	}
	return false
}

// expandBraces returns what the shell makes of marked braces; s itself if there is nothing to expand, or too much (not
// whole).
func expandBraces(s string) (words []string, whole bool) {
	done := []string{}
	todo := []string{s}
	for len(todo) > 0 {
		if len(done)+len(todo) > maxBraced {
			return []string{s}, false
		}
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		before, choices, after, whole := firstBraces(s)
		if !whole || len(choices) > maxBraced {
			return []string{s}, false
		}
		if choices == nil {
			done = append(done, s)
			continue
		}
		for i := len(choices) - 1; i >= 0; i-- {
			todo = append(todo, before+choices[i]+after)
		}
	}
	return done, true
}

// firstBraces finds the first group with a comma of its own. Not whole: there are too many others before it.
func firstBraces(s string) (before string, choices []string, after string, whole bool) {
	groups := 0
	for open := 0; open < len(s); open++ {
		if s[open] != braceOpen {
			continue
		}
		if groups++; groups > maxBraced {
			return s, nil, "", false
		}
		depth, start := 0, open+1
		choices = nil
		for i := open; i < len(s); i++ {
			switch s[i] {
			case braceOpen:
				depth++
			case braceComma:
				if depth == 1 {
					choices = append(choices, s[start:i])
					start = i + 1
				}
			case braceClose:
				depth--
			}
			if depth == 0 {
				if choices == nil {
					break
				}
				return s[:open], append(choices, s[start:i]), s[i+1:], true
			}
		}
	}
	return s, nil, "", true
}

// unmark makes ordinary braces of those that are left.
func unmark(s string) string {
	if strings.IndexByte(s, braceOpen) < 0 && strings.IndexByte(s, braceComma) < 0 &&
		strings.IndexByte(s, braceClose) < 0 {
		return s
	}
	return strings.Map(func(c rune) rune {
		switch c {
		case braceOpen:
			return '{'
		case braceComma:
			return ','
		case braceClose:
			return '}'
		}
		return c
	}, s)
}
