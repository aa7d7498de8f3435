package textedit

import (
	"fmt"
	"unicode/utf8"
)

// minClip and maxClip are the bounds of how much of a long line a diff shows if it does not fit otherwise, in bytes.
const (
	minClip = 24
	maxClip = 500
)

// clipNote is about how many bytes it takes to say that a line was clipped. A line that is only so much longer stays.
const clipNote = 40

// A clipping clips the lines of one diff.
type clipping struct {
	most int  // bytes of a line
	lost bool // a changed line was clipped, so that the diff does not tell all of the change
}

// line clips line i of some that stand in a diff with a sign. Others are those in their place on the other side.
func (c *clipping) line(sign byte, line string, others []string, i int) string {
	other := ""
	if i < len(others) {
		other = others[i]
	}
	text := clipped(line, other, c.most)
	c.lost = c.lost || sign != ' ' && text != line
	return text
}

// clipped is at most n bytes of a line, rounded to characters, and what is left out on both sides: from a little before
// the first difference from other on. An other that shares nothing with it says that the line counts from its
// beginning.
func clipped(line, other string, n int) string {
	if len(line) <= n+clipNote {
		return line
	}
	from := max(0, min(sameHead(line, other)-n/3, len(line)-n))
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	to := from + n
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	text := line[from:to]
	if from > 0 {
		text = fmt.Sprintf("[... %d characters] %s", utf8.RuneCountInString(line[:from]), text)
	}
	if to < len(line) {
		text += fmt.Sprintf("... (truncated, %d more characters)", utf8.RuneCountInString(line[to:]))
	}
	return text
}
