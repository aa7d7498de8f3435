package textedit

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"codehand/tools/textedit/compare"
)

// ErrNoHunk says that contents have no hunk with that head.
var ErrNoHunk = errors.New("there is no such hunk")

// ErrTouched says that the lines of a hunk, or one of those around it, were changed since.
var ErrTouched = errors.New("the lines of this hunk were changed since")

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$`)

// TakeBack takes one hunk of the Diff of before and after back in now, which others made of after: its lines, and those
// around it, become what they were before, byte for byte, and all other lines stay as they are. head is the first line
// of the hunk. The errors are ErrNoHunk and ErrTouched.
//
// Lines are what ends in a line feed, so a head of contents in UTF-16 names none.
func TakeBack(before, after, now []byte, head string) ([]byte, error) {
	was, is, here := linesOf(before), linesOf(after), linesOf(now)
	m := hunkHead.FindStringSubmatch(head)
	if m == nil || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return nil, ErrNoHunk
	}
	oldFrom, oldTo := stretch(m[1], m[2])
	from, to := stretch(m[3], m[4])
	if oldFrom < 0 || oldTo > len(was) || from < 0 || to > len(is) {
		return nil, ErrNoHunk
	}
	moved := 0 // by how many lines it stands further down now
	for _, c := range compare.Lines(is, here) {
		inside := c.OldFrom < to && c.OldTo > from
		if inside || from == to && c.OldFrom <= from && c.OldTo >= from {
			return nil, ErrTouched
		}
		if c.OldTo <= from {
			moved += (c.NewTo - c.NewFrom) - (c.OldTo - c.OldFrom)
		}
	}
	from, to = from+moved, to+moved
	back := strings.Join(was[oldFrom:oldTo], "")
	if to < len(here) && back != "" && !strings.HasSuffix(back, "\n") {
		return nil, ErrTouched // what was the last line is not the last one any more
	}
	return []byte(strings.Join(here[:from], "") + back + strings.Join(here[to:], "")), nil
}

// linesOf are the lines of a content, each with its end.
func linesOf(content []byte) []string {
	all := strings.SplitAfter(string(content), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1] // behind the end of the last one
	}
	return all
}

// stretch reads the half of a head: from which line up to which, counted from 0.
func stretch(first, count string) (from, to int) {
	n := 1
	if count != "" {
		n, _ = strconv.Atoi(count) // digits; too many are more than there are lines
	}
	from, _ = strconv.Atoi(first)
	if n > 0 {
		from-- // of no lines, the one before is named
	}
	return from, from + n
}
