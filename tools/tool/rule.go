package tool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxString is how many bytes a string may hold without a maxlen of its own: enough for any source file.
const maxString = 4 << 20

// maxList is how many items a list may hold without a maxitems of its own. Two bytes of JSON can make an
// item of some hundred bytes in memory, so a list needs a limit that the size of the message does not give.
const maxList = 10_000

// limits are what a rule tag says. A nil pointer means: no limit of its own.
type limits struct {
	min, max           *int64
	minLen, maxLen     *int64 // characters; bytes
	maxRunes           *int64 // characters
	minItems, maxItems *int64
	enum               []string
	also               map[string]string // choices by other words that are taken for them
	preset             any               // default: string, int64 or bool; nil: none
}

// readRule reads a rule tag into s, and what holds for the items of a list into them.
func (s *shape) readRule(tag string) error {
	on := s
	if s.kind == list {
		on = s.item
	}
	for _, word := range strings.Fields(tag) {
		key, value, ok := strings.Cut(word, "=")
		if !ok || value == "" {
			return fmt.Errorf("rule %q: want key=value", word)
		}
		if err := s.set(on, key, value); err != nil {
			return fmt.Errorf("rule %q: %w", word, err)
		}
	}
	return s.checkRule(on)
}

// set takes one word of a rule. on is s itself, or its items if it is a list.
func (s *shape) set(on *shape, key, value string) error {
	number := func(to **int64, fits bool) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		if !fits {
			return fmt.Errorf("not for type %v", s.typ)
		}
		if *to != nil {
			return errors.New("said twice")
		}
		*to = &n
		return nil
	}
	switch key {
	case "min":
		return number(&on.min, on.kind == integer)
	case "max":
		return number(&on.max, on.kind == integer)
	case "minlen":
		return number(&on.minLen, on.kind == text)
	case "maxlen":
		return number(&on.maxLen, on.kind == text && on.maxRunes == nil)
	case "maxrunes":
		return number(&on.maxRunes, on.kind == text && on.maxLen == nil)
	case "minitems":
		return number(&s.minItems, s.kind == list)
	case "maxitems":
		return number(&s.maxItems, s.kind == list)
	case "enum":
		if on.kind != text || on.enum != nil {
			return fmt.Errorf("not for type %v, or said twice", s.typ)
		}
		on.enum = strings.Split(value, "|")
		return nil
	case "also":
		for pair := range strings.SplitSeq(value, "|") {
			word, means, _ := strings.Cut(pair, ":")
			if !slices.Contains(on.enum, means) || slices.Contains(on.enum, word) || word == "" {
				return errors.New("want WORD:CHOICE after enum, and a new word")
			}
			if on.also == nil {
				on.also = map[string]string{}
			}
			on.also[word] = means
		}
		return nil
	case "absent":
		s.absent = true
		return s.setDefault(value)
	case "default":
		return s.setDefault(value)
	}
	return errors.New("unknown key")
}

func (s *shape) setDefault(value string) (err error) {
	if s.preset != nil {
		return errors.New("said twice")
	}
	switch s.kind {
	case text:
		s.preset = value
	case integer:
		s.preset, err = strconv.ParseInt(value, 10, 64)
	case boolean:
		s.preset, err = strconv.ParseBool(value)
	default:
		err = fmt.Errorf("not for type %v", s.typ)
	}
	return err
}

// checkRule finds limits that no value meets and a default that breaks them.
func (s *shape) checkRule(on *shape) error {
	for _, pair := range [][2]*int64{{on.min, on.max}, {on.minLen, on.maxLen}, {on.minLen, on.maxRunes},
		{s.minItems, s.maxItems}} {
		if pair[0] != nil && pair[1] != nil && *pair[0] > *pair[1] {
			return errors.New("rule: the minimum is above the maximum")
		}
	}
	for _, n := range []*int64{on.minLen, on.maxLen, on.maxRunes, s.minItems, s.maxItems} {
		if n != nil && *n < 0 {
			return errors.New("rule: a length is below 0")
		}
	}
	if slices.Contains(on.enum, "") || len(slices.Compact(slices.Sorted(slices.Values(on.enum)))) < len(on.enum) {
		return errors.New("rule: a choice is empty or said twice")
	}
	if s.preset == nil {
		return nil
	}
	if s.optional == s.absent {
		return errors.New("rule: default is of an optional parameter, absent of a required one")
	}
	if wrong := s.checkDefault(); wrong != "" {
		return errors.New("rule: the default " + wrong)
	}
	return nil
}

func (s *shape) checkDefault() string {
	switch v := s.preset.(type) {
	case string:
		return s.checkText(v)
	case int64:
		return s.checkInteger(v)
	}
	return ""
}

// checkText says in half a sentence what is wrong with v; "": nothing.
func (s *shape) checkText(v string) string {
	most := int64(maxString)
	if s.maxLen != nil {
		most = *s.maxLen
	}
	switch {
	case int64(len(v)) > most:
		return fmt.Sprintf("must have at most %d bytes, not %d", most, len(v))
	case s.maxRunes != nil && int64(utf8.RuneCountInString(v)) > *s.maxRunes:
		return fmt.Sprintf("must have at most %d characters, not %d", *s.maxRunes, utf8.RuneCountInString(v))
	case s.minLen != nil && v == "" && *s.minLen > 0:
		return "must not be empty"
	case s.minLen != nil && int64(utf8.RuneCountInString(v)) < *s.minLen:
		return fmt.Sprintf("must have at least %d characters, not %d", *s.minLen, utf8.RuneCountInString(v))
	case s.enum != nil && !slices.Contains(s.enum, v):
		return "must be one of " + quoted(s.enum) + ", not " + quote(v)
	}
	return ""
}

func (s *shape) checkInteger(v int64) string {
	switch {
	case s.min != nil && v < *s.min:
		return fmt.Sprintf("must be at least %d, not %d", *s.min, v)
	case s.max != nil && v > *s.max:
		return fmt.Sprintf("must be at most %d, not %d", *s.max, v)
	}
	return ""
}

func (s *shape) checkItems(n int) string {
	most := int64(maxList)
	if s.maxItems != nil {
		most = *s.maxItems
	}
	switch {
	case int64(n) > most:
		return fmt.Sprintf("must have at most %d items, not %d", most, n)
	case s.minItems != nil && int64(n) < *s.minItems:
		return fmt.Sprintf("must have at least %d items, not %d", *s.minItems, n)
	}
	return ""
}
