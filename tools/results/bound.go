package results

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// around is what is set aside of a cap for the marker and the line ends.
	around = 60
	// slack is the part of head or tail, one in so many, that may be given up to end at a line end.
	slack = 10
	// unlimited stands for a limit that is not set. Twice it still fits an int.
	unlimited = int(^uint(0)>>1) / 4
)

// Fits reports whether text is within every limit.
func (f Form) Fits(text string) bool {
	return (f.Bytes <= 0 || len(text) <= f.Bytes) &&
		(f.Runes <= 0 || len(text) <= f.Runes || utf8.RuneCountInString(text) <= f.Runes) &&
		(f.Lines <= 0 || countLines(text) <= f.Lines)
}

// Room is what is left of a form beside text. ok is false if that is nothing; limits that f does not have are not in
// it.
func (f Form) Room(text string) (room Form, ok bool) {
	ok = true
	less := func(limit, used int) int {
		if limit <= 0 {
			return 0
		}
		ok = ok && used < limit
		return limit - used
	}
	return Form{less(f.Runes, utf8.RuneCountInString(text)), less(f.Bytes, len(text)), less(f.Lines, countLines(text))},
		ok
}

// Half is a form of half the size.
func (f Form) Half() Form { return Form{(f.Runes + 1) / 2, (f.Bytes + 1) / 2, (f.Lines + 1) / 2} }

// Cut returns text, or as much of its beginning as fits together with a last line that says how much is missing; "" if
// there is no room for that line.
func (f Form) Cut(text string) (shown string, whole bool) {
	if f.Fits(text) {
		return text, true
	}
	total := utf8.RuneCountInString(text)
	room, ok := f.Room(marker(int64(total)) + "\n") // the line end is that before it
	if !ok {
		return "", false
	}
	shown = text[:lineEnd(text, room.prefix(text))]
	left := total - utf8.RuneCountInString(shown)
	if shown != "" && !strings.HasSuffix(shown, "\n") {
		shown += "\n"
	}
	return shown + marker(int64(left)), false
}

// countLines counts a last line without line end, too.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// A cutting is what a short form is made of.
type cutting struct {
	head, tail string
	same       bool  // head and tail are the same whole text
	between    int64 // bytes of the whole that are in neither
}

// short puts first line, head, marker and tail together so that they fit. If not even the first line does, it is
// itself cut: a form that small cannot say more.
func (f Form) short(first string, c cutting) string {
	total := int64(utf8.RuneCountInString(c.head)) + c.between
	if !c.same {
		total += int64(utf8.RuneCountInString(c.tail))
	}
	// No marker is longer than that of the total; three line ends join the parts.
	frame := first + "\n" + marker(total) + "\n\n"
	each := Form{
		Runes: share(f.Runes, utf8.RuneCountInString(frame)),
		Bytes: share(f.Bytes, len(frame)),
		Lines: share(f.Lines, 2),
	}
	if f.Runes > 0 {
		each.Runes = min(each.Runes, (f.Runes-around)/2)
	}
	if each.Runes <= 0 || each.Bytes <= 0 || each.Lines <= 0 {
		return first[:f.prefix(first)]
	}
	head := c.head[:lineEnd(c.head, each.prefix(c.head))]
	rest := c.tail
	if c.same {
		rest = c.tail[len(head):] // the two must not overlap
	}
	tail := rest[lineStart(rest, each.suffix(rest)):]
	left := total - int64(utf8.RuneCountInString(head)) - int64(utf8.RuneCountInString(tail))
	return first + "\n" + strings.TrimSuffix(head, "\n") + "\n" + marker(left) + "\n" + tail
}

func marker(n int64) string { return fmt.Sprintf("[... truncated %d chars ...]", n) }

// share is what head and tail get each of a limit; frame is used up already.
func share(limit, frame int) int {
	if limit <= 0 {
		return unlimited
	}
	return (limit - frame) / 2
}

// prefix returns the length in bytes of the longest beginning of text that f allows. A limit of zero is none here.
func (f Form) prefix(text string) int {
	runes, lines, at := 0, 0, 0
	for at < len(text) {
		_, size := utf8.DecodeRuneInString(text[at:])
		if f.Bytes > 0 && at+size > f.Bytes || f.Runes > 0 && runes == f.Runes || f.Lines > 0 && lines == f.Lines {
			break
		}
		if text[at] == '\n' {
			lines++
		}
		at += size
		runes++
	}
	return at
}

// suffix returns where the longest end of text begins that f allows.
func (f Form) suffix(text string) int {
	runes, lines, at := 0, 0, len(text)
	for at > 0 {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		// The line end before the first line of the suffix does not belong to it.
		if text[at-1] == '\n' && at < len(text) {
			lines++
		}
		if f.Bytes > 0 && len(text)-at+size > f.Bytes || f.Runes > 0 && runes == f.Runes ||
			f.Lines > 0 && lines == f.Lines {
			break
		}
		at -= size
		runes++
	}
	return at
}

// lineEnd moves the end of a head back to behind a line end if one is near.
func lineEnd(text string, end int) int {
	if end == len(text) {
		return end
	}
	if i := strings.LastIndexByte(text[:end], '\n'); i >= 0 && i+1 >= end-end/slack {
		return i + 1
	}
	return end
}

// lineStart moves the start of a tail forward to behind a line end if one is near.
func lineStart(text string, start int) int {
	if start == 0 || text[start-1] == '\n' {
		return start
	}
	if i := strings.IndexByte(text[start:], '\n'); i >= 0 && i+1 <= (len(text)-start)/slack {
		return start + i + 1
	}
	return start
}
