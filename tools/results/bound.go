package results

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// slack is the part of head or tail, one in so many, that may be given up to end at a line end.
	slack = 10
	// unlimited stands for a limit that is not set. Twice it still fits an int.
	unlimited = int(^uint(0)>>1) / 4
)

// Fits reports whether text is within every limit.
func (f Form) Fits(text string) bool {
	return (f.Bytes <= 0 || len(text) <= f.Bytes) &&
		(f.Runes <= 0 || len(text) <= f.Runes || utf8.RuneCountInString(text) <= f.Runes) &&
		(f.Lines <= 0 || countLines(text) <= f.Lines) &&
		(f.JSON <= 0 || unitsOf(text) <= f.JSON)
}

// units is how long a character is in a string of JSON, in UTF-16 units.
func units(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\t', r == '\r', r == '\b', r == '\f', r > 0xffff:
		return 2
	case r < ' ':
		return len(`\u0000`)
	}
	return 1
}

// unitsOf is how long a text is in a string of JSON, in UTF-16 units.
func unitsOf(text string) int {
	n := 0
	for _, r := range text {
		n += units(r)
	}
	return n
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
	return Form{less(f.Runes, utf8.RuneCountInString(text)), less(f.Bytes, len(text)), less(f.Lines, countLines(text)),
		less(f.JSON, unitsOf(text))}, ok
}

// Half is a form of half the size.
func (f Form) Half() Form {
	return Form{(f.Runes + 1) / 2, (f.Bytes + 1) / 2, (f.Lines + 1) / 2, (f.JSON + 1) / 2}
}

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
	shown = text[:ownEnd(text, lineEnd(text, room.prefix(text)))]
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
		JSON:  share(f.JSON, unitsOf(frame)),
	}
	if min(each.Runes, each.Bytes, each.Lines, each.JSON) <= 0 {
		return first[:f.prefix(first)]
	}
	head := c.head[:ownEnd(c.head, lineEnd(c.head, each.prefix(c.head)))]
	over := 0
	if c.same {
		over = len(head) // the two must not overlap
	}
	rest := c.tail[over:]
	tail := c.tail[ownStart(c.tail, over+lineStart(rest, each.suffix(rest))):]
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
	var used Form
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if f.full(&used, r, size) {
			break
		}
		if r == '\n' {
			used.Lines++
		}
		at += size
	}
	return at
}

// suffix returns where the longest end of text begins that f allows.
func (f Form) suffix(text string) int {
	var used Form
	at := len(text)
	for at > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:at])
		// The line end before the first line of the suffix does not belong to it.
		if r == '\n' && at < len(text) {
			used.Lines++
		}
		if f.full(&used, r, size) {
			break
		}
		at -= size
	}
	return at
}

// full adds a character to what is used of f, or says that there is no room for it. Lines are counted by the caller.
func (f Form) full(used *Form, r rune, size int) bool {
	if f.Bytes > 0 && used.Bytes+size > f.Bytes || f.Runes > 0 && used.Runes == f.Runes ||
		f.Lines > 0 && used.Lines == f.Lines || f.JSON > 0 && used.JSON+units(r) > f.JSON {
		return true
	}
	used.Bytes, used.Runes, used.JSON = used.Bytes+size, used.Runes+1, used.JSON+units(r)
	return false
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

// ownStart moves the start of a tail forward while the rest of a line that it begins with looks like a line of ours,
// which the whole line does not.
func ownStart(text string, start int) int {
	if start == 0 || text[start-1] == '\n' {
		return start
	}
	for start < len(text) && text[start] != '\n' {
		line, _, _ := strings.Cut(text[start:], "\n")
		if !looksOurs(line) {
			break
		}
		_, size := utf8.DecodeRuneInString(line)
		start += size
	}
	return start
}

// ownEnd moves the end of a head back while the beginning of a line that it ends with looks like a line of ours, which
// the whole line does not.
func ownEnd(text string, end int) int {
	if end == len(text) || text[end] == '\n' {
		return end
	}
	start := strings.LastIndexByte(text[:end], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	for end > start && looksOurs(text[start:end]) && !looksOurs(line) {
		_, size := utf8.DecodeLastRuneInString(text[start:end])
		end -= size
	}
	return end
}
