package pattern

import (
	"bytes"
	"unicode/utf8"
)

// maxQuick bounds the work that Go's regexp gets at once, in bytes times instructions: it cannot be stopped.
const maxQuick = 4 << 20

// A Matcher asks one program about the lines of buffers. It belongs to one worker.
type Matcher struct {
	p       *Program
	threads *threads // made when first needed
	finder  finder
	stop    func() bool
}

// NewMatcher returns a matcher that gives up, without a match, once stop says so. stop is asked after each line, and
// within a line after some work.
func NewMatcher(p *Program, stop func() bool) *Matcher {
	return &Matcher{p: p, stop: stop, finder: finder{needles: &p.need}}
}

// Begin takes a buffer of lines, for Next.
func (m *Matcher) Begin(buf []byte) {
	if len(m.p.need.list) > 0 {
		m.finder.reset(buf)
	}
}

// Next returns the next matching line that begins at or behind from, which is the start of a line: its start, and its
// end without the LF. Lines without a literal that the pattern needs are never looked at.
func (m *Matcher) Next(buf []byte, from int) (start, end int, ok bool) {
	for from < len(buf) {
		start = from
		if len(m.p.need.list) > 0 {
			hit := m.finder.find(from)
			if hit < 0 {
				return 0, 0, false
			}
			start = from + bytes.LastIndexByte(buf[from:hit], '\n') + 1
		}
		end = len(buf)
		if i := bytes.IndexByte(buf[start:], '\n'); i >= 0 {
			end = start + i
		}
		if m.p.need.plain && len(m.p.need.list) > 0 || m.matches(buf[start:end]) {
			return start, end, true
		}
		if from = end + 1; m.stop() {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// matches decides about one line, without its LF.
func (m *Matcher) matches(line []byte) bool {
	if isASCII(line) {
		if m.p.never {
			return false
		}
		if m.p.ascii != nil && m.quick(line) {
			return m.p.ascii.Match(line)
		}
	}
	_, ok := m.slow().find(line, 0, true)
	return ok
}

// MayMatch says whether a text has one of the literals that each match needs. It takes the text as Begin does.
func (m *Matcher) MayMatch(text []byte) bool {
	if len(m.p.need.list) == 0 {
		return true
	}
	m.Begin(text)
	return m.finder.find(0) >= 0
}

// FindMultiline returns the leftmost match of a pattern of multiline mode that begins at from or later. With quick it
// may stop at the first sign of a match, whose place then means nothing.
func (m *Matcher) FindMultiline(text []byte, from int, quick bool) (Span, bool) {
	return m.slow().find(text, from, quick)
}

func (m *Matcher) quick(line []byte) bool { return len(line)*len(m.p.prog.Inst) <= maxQuick }

// Spans returns where the matches of a line are: leftmost first, without overlap, none empty, at most limit (0: all).
// The CR of a line's end is in none of them.
func (m *Matcher) Spans(line []byte, limit int) []Span {
	text := len(trimCR(line))
	var out []Span
	for from := 0; from <= len(line); {
		s, ok := m.find(line, from)
		if !ok {
			break
		}
		if s.To = min(s.To, text); s.From < s.To {
			out = append(out, s)
			if len(out) == limit {
				break
			}
			from = s.To
			continue
		}
		// An empty match says nothing, and the next one is looked for one rune on.
		_, n := runeAt(line, s.From)
		from = s.From + max(n, 1)
	}
	return out
}

// find returns the leftmost match of a line from a place on.
func (m *Matcher) find(line []byte, from int) (Span, bool) {
	if from == 0 && m.p.ascii != nil && m.quick(line) && isASCII(line) {
		at := m.p.ascii.FindIndex(line)
		if at == nil {
			return Span{}, false
		}
		return Span{at[0], at[1]}, true
	}
	return m.slow().find(line, from, false)
}

func (m *Matcher) slow() *threads {
	if m.threads == nil {
		m.threads = newThreads(m.p, m.stop)
	}
	return m.threads
}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&utf8.RuneSelf != 0 {
			return false
		}
		b = b[8:]
	}
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
