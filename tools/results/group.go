package results

import (
	"sync"
	"unicode/utf8"
)

const (
	// maxGroup is how many characters the results of one group of calls show together: some clients hold all results of
	// one turn against one limit, and what is over it they cut as they like.
	maxGroup = 200_000
	// spare is the part of maxGroup that whole results leave free. Results that were sent cannot shrink, so whatever
	// follows a full group needs room for its first line and its preview.
	spare = 20_000
	// previewBytes is what a result shows for which the group has no room.
	previewBytes = 2_000
)

// A group counts what the calls of one turn show. It is safe for concurrent use.
type group struct {
	mu    sync.Mutex
	shown int // characters so far
}

// turns tells the turns of a model apart: a model sends the calls of one turn before it has read an answer to any.
type turns struct {
	mu   sync.Mutex
	open *group // that a call joins which arrives now; nil: it begins one
}

// Arrive returns the view for a call that arrives now. The calls that arrive before any of them is answered share the
// room of one turn; the next call after an answer begins a new turn, whatever still runs. The caller runs answered when
// the call has been answered; more than once does no harm.
func (s *Shelf) Arrive() (own *Shelf, answered func()) {
	t := s.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = &group{}
	}
	g := t.open
	return &Shelf{dir: s.dir, turns: t, group: g}, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.open == g {
			t.open = nil
		}
	}
}

// Count adds n characters to what the group shows: those that came to a result after it was bounded. n may be negative.
func (s *Shelf) Count(n int) {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = max(g.shown+n, 0)
}

// Reserve counts n more characters, or as many as the group still has room for, and says how many. What of them is not
// used is given back by Count.
func (s *Shelf) Reserve(n int) int {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	n = max(min(n, maxGroup-g.shown), 0)
	g.shown += n
	return n
}

// Claim counts as many characters as a result of at most want may show, and says how many: all, what the turn has room
// for, or at least as many as a preview. What of them is not used is given back by Count. It is for tools that show a
// part of something and say how to go on, so that what they show is not cut afterwards.
func (s *Shelf) Claim(want int) int {
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
	room := max(maxGroup-spare-g.shown, min(previewBytes, maxGroup-g.shown), 1)
	n := min(want, room)
	g.shown += n
	return n
}

// takes counts a text into the group if there is room for it. A text that is no longer than a preview is always shown.
func (g *group) takes(text string) bool {
	n := utf8.RuneCountInString(text)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(text) > previewBytes && g.shown+n > maxGroup-spare {
		return false
	}
	g.shown += n
	return true
}

// preview makes the form of a text for which the group has no room: first line and the beginning, or the first line
// alone when previews have used up what was spared for them.
func (g *group) preview(first, text string, f Form) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	short := f.preview(first, text)
	if g.shown+utf8.RuneCountInString(short) > maxGroup {
		short = first[:f.prefix(first)]
	}
	g.shown += utf8.RuneCountInString(short)
	return short
}

// preview puts first line, the beginning of text and a marker together so that they fit. The beginning has at most
// previewBytes and ends with a line if there is one in it.
func (f Form) preview(first, text string) string {
	total := utf8.RuneCountInString(text)
	frame := first + "\n" + marker(int64(total)) + "\n\n"
	part := Form{Bytes: previewBytes}
	if f.Bytes > 0 {
		part.Bytes = min(part.Bytes, f.Bytes-len(frame))
	}
	if f.Runes > 0 {
		part.Runes = f.Runes - utf8.RuneCountInString(frame)
	}
	if f.Lines > 0 {
		part.Lines = f.Lines - 2
	}
	if f.JSON > 0 {
		part.JSON = f.JSON - unitsOf(frame)
	}
	if part.Bytes <= 0 || f.Runes > 0 && part.Runes <= 0 || f.Lines > 0 && part.Lines <= 0 ||
		f.JSON > 0 && part.JSON <= 0 {
		return first[:f.prefix(first)]
	}
	head := text[:part.prefix(text)]
	if whole := lastLine(head); whole > 0 {
		head = head[:whole]
	}
	left := total - utf8.RuneCountInString(head)
	if head != "" && head[len(head)-1] != '\n' {
		head += "\n"
	}
	return first + "\n" + head + marker(int64(left)) + "\n"
}

// lastLine is where the last line that is whole ends; 0: there is none.
func lastLine(text string) int {
	for i := len(text); i > 0; i-- {
		if text[i-1] == '\n' {
			return i
		}
	}
	return 0
}
