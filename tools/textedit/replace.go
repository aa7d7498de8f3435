package textedit

import (
	"bytes"
	"iter"
	"strings"
)

// replace writes t.add over the matches at places, which are in order and do not overlap.
func (c *copyOf) replace(edit int, t target, places iter.Seq[int]) (Done, error) {
	done := Done{Level: t.level}
	size := c.sized(t, places)
	if size > c.limit {
		return Done{}, ErrTooLarge // before all that there is room for was made
	}
	out := make([]byte, 0, size)
	ends := lineEnds{content: c.content}
	var added []anchor
	var splices []splice
	copied, moved := 0, 0
	for at := range places {
		from, to := t.span(at)
		text := t.add
		if t.level == Quotes {
			text = restyle(string(c.content[from:to]), t.old, t.add, t.prose)
		}
		if text == "" {
			to += t.wholeLine(c.content, at, from, to)
		}
		// The line ends can double what New has of them.
		if len(out)+(from-copied)+len(text)+strings.Count(text, "\n")+(len(c.content)-to) > c.limit {
			return Done{}, ErrTooLarge
		}
		out = append(out, c.content[copied:from]...)
		moved = c.move(moved, from, to, len(out))
		if len(added) < maxLines {
			added = append(added, anchor{edit: edit, at: len(out)})
		}
		start := len(out)
		out = ends.write(out, text, from, to)
		if c.coded != nil || len(splices) < maxPlaces {
			splices = append(splices, splice{from, to, out[start:len(out):len(out)]})
		}
		copied = to
		done.Replacements++
		done.Changed += to - from
	}
	out = append(out, c.content[copied:]...)
	if changed, err := c.note(splices); err != nil {
		return Done{}, err
	} else if c.coded != nil {
		done.Changed = changed
	}
	for i := moved; i < len(c.anchors); i++ {
		c.anchors[i].at += len(out) - len(c.content)
	}
	c.content = out
	c.keep(added)
	return done, nil
}

// sized is how many bytes the content will have at least, if no line goes as a whole.
func (c *copyOf) sized(t target, places iter.Seq[int]) int {
	size, add := len(c.content), len(t.add)
	if t.level == Quotes {
		add /= 3 // a curly quote takes three bytes, a straight one takes one
	}
	for at := range places {
		from, to := t.span(at)
		size += add - (to - from)
	}
	return size
}

// move takes the anchors from number i on, up to the replaced span, to where they are in the new content, in which the
// span begins at start. One within the span comes to its beginning. It returns the first anchor behind the span.
func (c *copyOf) move(i, from, to, start int) int {
	for ; i < len(c.anchors) && c.anchors[i].at < to; i++ {
		c.anchors[i].at = start - max(0, from-c.anchors[i].at)
	}
	return i
}

// wholeLine returns how many bytes the line end behind a match has that goes too when the match is deleted: the match
// must begin at a line start, must not end in a line end itself, and must be followed by one. It stays if it belongs to
// the next match.
func (t *target) wholeLine(content []byte, at, from, to int) int {
	if from > t.view.from && content[from-1] != '\n' || content[to-1] == '\n' {
		return 0
	}
	if bytes.HasPrefix(t.view.text[at+len(t.needle):], t.needle) {
		return 0
	}
	switch rest := content[to:]; {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		return 2
	case bytes.HasPrefix(rest, newline):
		return 1
	}
	return 0
}

// lineEnds spells the line ends of new text as the file does around it. The spans must come in order.
type lineEnds struct {
	content []byte
	next    int    // offset of the first \n at or behind the last span that asked; len(content): there is none
	last    string // the last line end of the content, once there is none behind
}

// write appends text to out. Its k-th line end is spelled as the k-th one of the span that it replaces, then as the
// span's last, and if that has none as those of the line where the span is.
func (l *lineEnds) write(out []byte, text string, from, to int) []byte {
	spelled, known := "", false
	for line := range strings.Lines(text) {
		body, ended := strings.CutSuffix(line, "\n")
		out = append(out, body...)
		if !ended {
			break
		}
		if i := bytes.IndexByte(l.content[from:to], '\n'); i >= 0 {
			spelled, known = l.at(from+i), true
			from += i + 1
		} else if !known {
			spelled, known = l.near(to), true
		}
		out = append(out, spelled...)
	}
	return out
}

// near returns the line end of the line in which offset to is: a last line that has none takes that of the line before.
func (l *lineEnds) near(to int) string {
	// Answers are kept, because a long line with many matches would be looked through for each of them.
	if l.next < to {
		if i := bytes.IndexByte(l.content[to:], '\n'); i >= 0 {
			l.next = to + i
		} else {
			l.next = len(l.content)
			l.last = "\n"
			if i := bytes.LastIndexByte(l.content, '\n'); i >= 0 {
				l.last = l.at(i)
			}
		}
	}
	if l.next == len(l.content) {
		return l.last
	}
	return l.at(l.next)
}

// at returns the line end whose \n is at offset i.
func (l *lineEnds) at(i int) string {
	if i > 0 && l.content[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
