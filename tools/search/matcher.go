package search

import (
	"bytes"
	"unicode/utf8"
)

// maxQuick bounds the work that Go's regexp gets at once, in bytes times instructions: it cannot be stopped.
const maxQuick = 4 << 20

// A matcher asks one program about the lines of buffers. It belongs to one worker.
type matcher struct {
	p       *program
	threads *threads // made when first needed
	finder  finder
	stop    func() bool
}

func newMatcher(p *program, stop func() bool) *matcher {
	return &matcher{p: p, stop: stop, finder: finder{needles: &p.need}}
}

// begin takes a buffer of lines, for next.
func (m *matcher) begin(buf []byte) {
	if len(m.p.need.list) > 0 {
		m.finder.reset(buf)
	}
}

// next returns the next matching line that begins at or behind from, which is the start of a line: its start, and its
// end without the LF. Lines without a literal that the pattern needs are never looked at.
func (m *matcher) next(buf []byte, from int) (start, end int, ok bool) {
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
func (m *matcher) matches(line []byte) bool {
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

func (m *matcher) quick(line []byte) bool { return len(line)*len(m.p.prog.Inst) <= maxQuick }

// spans returns where the matches of a line are: leftmost first, without overlap, none empty, at most limit (0: all).
// The CR of a line's end is in none of them.
func (m *matcher) spans(line []byte, limit int) []Span {
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
func (m *matcher) find(line []byte, from int) (Span, bool) {
	if from == 0 && m.p.ascii != nil && m.quick(line) && isASCII(line) {
		at := m.p.ascii.FindIndex(line)
		if at == nil {
			return Span{}, false
		}
		return Span{at[0], at[1]}, true
	}
	return m.slow().find(line, from, false)
}

func (m *matcher) slow() *threads {
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
