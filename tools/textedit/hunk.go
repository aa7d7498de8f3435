package textedit

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A Hunk makes an Edit one of a patch. Its Old and New are whole lines without the last line end, and it is searched
// behind the hunk before it in the same Apply. Old is found at the levels of any other edit. It may be there more often
// if Under says which one is meant.
type Hunk struct {
	// Under are lines that come before Old, in order: without the blanks around it such a line is one of the file, or
	// else how one begins, or else a part of one. Old is the first one behind them, which may begin with the last of
	// them itself. Of several places the first of Under must be one line only.
	Under []string
	// AtEnd says that nothing but a line end may follow Old.
	AtEnd bool
	// Insert says that Old is empty, and New comes behind the last line of Under, or where there is none at the end.
	Insert bool
}

// applyHunk does edit number i, which is a hunk.
func (c *copyOf) applyHunk(i int, e Edit) (Done, error) {
	from, behind, twice, err := c.under(e.Hunk.Under)
	if err != nil {
		return Done{}, err
	}
	size := len(c.content)
	if e.Hunk.Insert {
		at := behind
		if len(e.Hunk.Under) == 0 || e.Hunk.AtEnd {
			at = size
		} else if twice != nil {
			return Done{}, twice
		}
		return c.insert(i, e, at)
	}
	if c.coded != nil && !utf8.ValidString(e.Old) {
		return Done{}, &NotFoundError{}
	}
	var hits []int
	t, ok := find(c.content, e, func(t *target) bool {
		hits = t.wholeLines(c.content, from, e.Hunk.AtEnd)
		return len(hits) > 0
	})
	if !ok {
		return Done{}, c.misplaced(e, from)
	}
	t.at = hits[0]
	if len(hits) > 1 && (len(e.Hunk.Under) == 0 || twice != nil) {
		many := t.ambiguousAt(c.content, hits)
		if twice != nil {
			many.Under = twice.Under
		}
		return Done{}, many
	}
	if mixes(c.content, t.old, t.add) {
		return Done{}, ErrMix
	}
	_, to := t.span(t.at)
	start, _ := t.span(t.at)
	done, err := c.replace(i, t, t.one())
	if err == nil {
		c.behind = max(start, to+len(c.content)-size)
	}
	return done, err
}

// under goes through the lines that a hunk comes under. from is where the last of them begins, behind the line after
// it; without any of them both are behind the last hunk. twice says that the first of them is there more than once.
func (c *copyOf) under(lines []string) (from, behind int, twice *AmbiguousError, err error) {
	from = max(c.behind, len(mark(c.content)))
	behind = from
	for n, want := range lines {
		found := linesLike(c.content, behind, want)
		if len(found) == 0 && n == 0 && len(linesLike(c.content, 0, want)) > 0 {
			continue // an earlier hunk stands under the same line, or under one behind it
		}
		if len(found) == 0 {
			missing := &NotFoundError{Under: want}
			missing.Hint = hint(c.content, c.name, want)
			return 0, 0, nil, missing
		}
		if n == 0 && len(found) > 1 {
			twice = &AmbiguousError{Count: len(found), Under: want}
			for _, at := range found[:min(len(found), maxLines)] {
				twice.Lines = append(twice.Lines, lineOf(c.content, at))
			}
		}
		from = found[0]
		behind = ahead(c.content, from, 0)
	}
	return from, behind, twice, nil
}

// linesLike returns where the lines of content from offset at on begin that are like want: those that are it, but for
// blanks around it, else those that begin with it, else those that hold it.
func linesLike(content []byte, at int, want string) []int {
	wanted := []byte(strings.TrimSpace(want))
	var same, begin, hold []int
	for line := range bytes.Lines(content[at:]) {
		bare := bytes.TrimSpace(line)
		switch {
		case bytes.Equal(bare, wanted):
			same = append(same, at)
		case bytes.HasPrefix(bare, wanted):
			begin = append(begin, at)
		case bytes.Contains(bare, wanted):
			hold = append(hold, at)
		}
		at += len(line)
	}
	for _, found := range [][]int{same, begin, hold} {
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// wholeLines returns the matches, by their offset in the view, that are whole lines of the file from offset from on.
func (t *target) wholeLines(content []byte, from int, atEnd bool) (hits []int) {
	text := t.view.text
	for at := range overlapping(text, t.needle, t.at) {
		start, end := t.span(at)
		rest := content[end:]
		ends := len(rest) == 0 || rest[0] == '\n' || bytes.HasPrefix(rest, []byte("\r\n"))
		begins := at == 0 || text[at-1] == '\n'
		if start >= from && begins && ends && (!atEnd || len(bytes.Trim(rest, "\r\n")) == 0) {
			hits = append(hits, at)
		}
	}
	return hits
}

// ambiguousAt says that a hunk fits at each of hits.
func (t *target) ambiguousAt(content []byte, hits []int) *AmbiguousError {
	e := &AmbiguousError{Count: len(hits), Level: t.level}
	for _, at := range hits[:min(len(hits), maxLines)] {
		from, _ := t.span(at)
		e.Lines = append(e.Lines, lineOf(content, from))
	}
	from, to := t.span(hits[0])
	e.Spelling = cut(strings.ToValidUTF8(string(content[from:to]), "\ufffd"), maxShown)
	return e
}

// misplaced says of a hunk that is not behind from where it is instead, if it is.
func (c *copyOf) misplaced(e Edit, from int) *NotFoundError {
	missing := &NotFoundError{}
	_, elsewhere := find(c.content, e, func(t *target) bool {
		for _, at := range t.wholeLines(c.content, 0, false) {
			start, _ := t.span(at)
			missing.Before = start < from
			missing.Line = lineOf(c.content, start)
			return true
		}
		return false
	})
	if !elsewhere {
		missing.Line = 0
	}
	return missing
}

// insert puts whole lines at an offset, where a line begins or the file ends.
func (c *copyOf) insert(i int, e Edit, at int) (Done, error) {
	add := foldEnds(e.New)
	if len(bytes.TrimSpace(c.content)) == 0 {
		return c.fill(i, Edit{New: add + "\n"})
	}
	if c.content[at-1] == '\n' {
		add += "\n"
	} else {
		add = "\n" + add // the last line has no end, and neither has the new one
	}
	if mixes(c.content, "", add) {
		return Done{}, ErrMix
	}
	size := len(c.content)
	t := target{view: view{text: c.content}, at: at, add: add, prose: e.Prose}
	done, err := c.replace(i, t, t.one())
	if err == nil {
		c.behind = at + len(c.content) - size
	}
	return done, err
}
