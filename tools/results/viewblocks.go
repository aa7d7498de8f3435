package results

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Stack shows blocks of text, such as pages or cells, one below the other and safe to read, until a limit is reached.
// The zero Stack has no limits; Name, First and Total must be set. It belongs to one goroutine.
type Stack struct {
	Name   string // of several blocks: pages
	First  int    // number of the first block
	Total  int    // blocks of the file
	Asked  int    // blocks that the caller wants; 0: all that there are
	Form   Form   // limits of the text
	Tokens int    // likewise, estimated as ASCII bytes / 4 + 1 per other character; 0: no limit
	Blocks int    // shown
	Cut    int    // characters that the last one lacks

	text   strings.Builder
	weight weight
	hidden int    // characters shown as escapes
	limit  string // what one more block would have exceeded; "": every block was taken
}

// Add shows the next block, or says that there is no room. A first block that does not fit is shortened, so that a
// stack is never empty.
func (s *Stack) Add(block string) bool {
	if s.Cut > 0 || s.Asked > 0 && s.Blocks == s.Asked {
		return false
	}
	shown, hidden := Show(s.head(block))
	if s.limit = s.exceeded(shown); s.limit != "" {
		if s.Blocks > 0 {
			return false
		}
		shown, hidden = s.shorten(block)
	}
	if s.Blocks > 0 {
		s.text.WriteByte('\n')
	}
	s.text.WriteString(shown)
	s.weight = s.with(shown)
	s.hidden += hidden
	s.Blocks++
	return true
}

// head is as much of a block as tells whether it fits. What is behind is not worth a look: a block may be as large as
// its file.
func (s *Stack) head(block string) string {
	most := 0
	for _, limit := range []int{s.Form.Runes, s.Form.Bytes, s.Form.JSON, 4 * s.Tokens} {
		if limit > 0 && (most == 0 || limit < most) {
			most = limit
		}
	}
	if most == 0 {
		return block
	}
	return headRunes(block, most+1)
}

// headRunes is the first runes of text.
func headRunes(text string, runes int) string {
	if len(text) <= runes {
		return text
	}
	at := 0
	for range runes {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return text[:at]
}

// String returns the blocks, joined by line ends.
func (s *Stack) String() string { return s.text.String() }

// Last is the number of the last block shown.
func (s *Stack) Last() int { return s.First + s.Blocks - 1 }

// More says that blocks follow.
func (s *Stack) More() bool { return s.Last() < s.Total }

// Partial is what stands before the blocks if fewer are shown than were asked for; else "". next says how to go on.
func (s *Stack) Partial(next string) string {
	if !s.More() || s.Asked > 0 && s.Blocks >= s.Asked {
		return ""
	}
	return fmt.Sprintf("PARTIAL view: %s %d-%d of %s (limit: %s). Continue with %s.\n", s.Name, s.First, s.Last(),
		Count(s.Total), s.limit, next)
}

// Remarks says what the blocks cannot show of themselves; with place also where they stand, unless Partial says so.
func (s *Stack) Remarks(place bool) []string {
	var all []string
	if place && s.Partial("") == "" {
		all = append(all, fmt.Sprintf("%s %d-%d of %s", s.Name, s.First, s.Last(), Count(s.Total)))
	}
	if s.hidden == 1 {
		all = append(all, "1 character is shown as an escape")
	} else if s.hidden > 1 {
		all = append(all, Count(s.hidden)+" characters are shown as escapes")
	}
	return all
}

// A weight is what is counted of a text.
type weight struct{ runes, quarters, bytes, lines, units int }

// with is the weight of the stack with one more block.
func (s *Stack) with(shown string) weight {
	runes, quarters := weigh(shown)
	w := weight{runes: runes, quarters: quarters, bytes: len(shown), lines: strings.Count(shown, "\n") + 1}
	if s.Form.JSON > 0 {
		w.units = unitsOf(shown)
	}
	if s.Blocks > 0 {
		w = weight{s.weight.runes + w.runes + 1, s.weight.quarters + w.quarters + 1, s.weight.bytes + w.bytes + 1,
			s.weight.lines + w.lines, s.weight.units + w.units + units('\n')}
	}
	return w
}

// exceeded names the limit that the stack with one more block would be over; "": none.
func (s *Stack) exceeded(shown string) string {
	w := s.with(shown)
	over := func(limit, n int) bool { return limit > 0 && n > limit }
	switch {
	case over(s.Form.Lines, w.lines):
		return Count(s.Form.Lines) + " lines"
	case over(4*s.Tokens, w.quarters):
		return Count(s.Tokens) + " tokens"
	case over(s.Form.Runes, w.runes):
		return Count(s.Form.Runes) + " characters"
	case over(s.Form.Bytes, w.bytes):
		return Count(s.Form.Bytes) + " bytes"
	case over(s.Form.JSON, w.units):
		return Count(s.Form.JSON) + " characters of JSON"
	}
	return ""
}

// shorten leaves out the end of a block until it fits, or until one character is left.
func (s *Stack) shorten(block string) (string, int) {
	whole := utf8.RuneCountInString(block)
	for kept := s.head(block); ; {
		runes := utf8.RuneCountInString(kept)
		kept = headRunes(kept, max(1, runes*7/8))
		s.Cut = whole - max(1, runes*7/8)
		shown, hidden := Show(kept)
		shown += fmt.Sprintf("\n... (truncated, %s more characters)", Count(s.Cut))
		if runes <= 1 || s.exceeded(shown) == "" {
			return shown, hidden
		}
	}
}
