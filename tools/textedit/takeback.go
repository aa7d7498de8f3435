package textedit

import (
	"bytes"
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"codehand/tools/textedit/compare"
)

// ErrNoHunk says that contents have no hunk with that head.
var ErrNoHunk = errors.New("there is no such hunk")

// ErrTouched says that the lines of a hunk, or one of those around it, were changed since.
var ErrTouched = errors.New("the lines of this hunk were changed since")

var hunkHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$`)
})

// TakeBack takes one hunk of the Diff of before and after back in now, which others made of after: its lines, and those
// around it, become what they were before, byte for byte, and all other lines stay as they are. head is the first line
// of the hunk. gone are those of hunks that were taken back before. The errors are ErrNoHunk and ErrTouched.
//
// Lines are what ends in a line feed, so a head of contents in UTF-16 names none.
func TakeBack(before, after, now []byte, head string, gone ...string) ([]byte, error) {
	was, is, here := linesOf(before), linesOf(after), linesOf(now)
	h, err := hunkOf(head, before, after, was, is)
	if err != nil {
		return nil, err
	}
	left, err := Without(before, after, gone...)
	if err != nil {
		return nil, err
	}
	from, to := h.from, h.to
	for _, head := range gone {
		if g, _ := hunkOf(head, before, after, was, is); g.from < from {
			from, to = from+g.grows(), to+g.grows()
		}
	}
	moved := 0 // by how many lines it stands further down now
	for _, c := range compare.Lines(linesOf(left), here) {
		inside := c.OldFrom < to && c.OldTo > from
		if inside || from == to && c.OldFrom <= from && c.OldTo >= from {
			return nil, ErrTouched
		}
		if c.OldTo <= from {
			moved += (c.NewTo - c.NewFrom) - (c.OldTo - c.OldFrom)
		}
	}
	from, to = from+moved, to+moved
	back := strings.Join(was[h.oldFrom:h.oldTo], "")
	if to < len(here) && back != "" && !strings.HasSuffix(back, "\n") {
		return nil, ErrTouched // what was the last line is not the last one any more
	}
	return []byte(strings.Join(here[:from], "") + back + strings.Join(here[to:], "")), nil
}

// Without is what after is when these hunks of the Diff of before and after were taken back. ErrNoHunk: one of them is
// none, or two are in each other's way.
func Without(before, after []byte, heads ...string) ([]byte, error) {
	if len(heads) == 0 {
		return after, nil
	}
	was, is := linesOf(before), linesOf(after)
	var hunks []hunkLines
	for _, head := range heads {
		h, err := hunkOf(head, before, after, was, is)
		if err != nil {
			return nil, err
		}
		hunks = append(hunks, h)
	}
	slices.SortFunc(hunks, func(a, b hunkLines) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, h := range hunks {
		if h.from < at {
			return nil, ErrNoHunk
		}
		b.WriteString(strings.Join(is[at:h.from], ""))
		b.WriteString(strings.Join(was[h.oldFrom:h.oldTo], ""))
		at = h.to
	}
	b.WriteString(strings.Join(is[at:], ""))
	return []byte(b.String()), nil
}

// Around is what before becomes when all is done in it that made now of after. ErrTouched: that and what made after of
// before touch each other.
func Around(before, after, now []byte) ([]byte, error) {
	was, is, here := linesOf(before), linesOf(after), linesOf(now)
	var b strings.Builder
	theirs := compare.Lines(is, here)
	at := 0    // lines of was that are in b, or replaced
	moved := 0 // by how many lines what stands in after stands further down in before
	ours := compare.Lines(is, was)
	for _, c := range theirs {
		for len(ours) > 0 && ours[0].OldTo < c.OldFrom {
			moved += (ours[0].NewTo - ours[0].NewFrom) - (ours[0].OldTo - ours[0].OldFrom)
			ours = ours[1:]
		}
		if len(ours) > 0 && ours[0].OldFrom <= c.OldTo {
			return nil, ErrTouched
		}
		b.WriteString(strings.Join(was[at:c.OldFrom+moved], ""))
		b.WriteString(strings.Join(here[c.NewFrom:c.NewTo], ""))
		at = c.OldTo + moved
	}
	b.WriteString(strings.Join(was[at:], ""))
	return []byte(b.String()), nil
}

// hunkLines are which lines of one content became which of another, counted from 0.
type hunkLines struct{ oldFrom, oldTo, from, to int }

// grows is by how many lines a content grows when the hunk is taken back.
func (h hunkLines) grows() int { return (h.oldTo - h.oldFrom) - (h.to - h.from) }

// hunkOf reads the head of a hunk of these contents. was and is are their lines.
func hunkOf(head string, before, after []byte, was, is []string) (h hunkLines, err error) {
	m := hunkHead().FindStringSubmatch(head)
	if m == nil || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return h, ErrNoHunk
	}
	h.oldFrom, h.oldTo = stretch(m[1], m[2])
	h.from, h.to = stretch(m[3], m[4])
	if h.oldFrom < 0 || h.oldTo > len(was) || h.from < 0 || h.to > len(is) {
		return h, ErrNoHunk
	}
	return h, nil
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
