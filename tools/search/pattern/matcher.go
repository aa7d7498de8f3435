package pattern

import "bytes"

const (
	// blockSize is how much of a buffer is scanned at once, in bytes: what is behind the first match of a file may be
	// scanned in vain.
	blockSize = 64 << 10
	// Literals that most lines have narrow nothing: the automaton is faster alone. After so many lines without a match
	// it goes on alone if they came more often than once in so many bytes.
	enoughMisses = 1 << 10
	sparseMisses = 128
)

// A Matcher asks one program about the lines of buffers. It belongs to one worker.
type Matcher struct {
	p       *Program
	auto    *automaton // made when first needed
	threads *threads   // the same
	finder  finder
	stop    func() bool

	found   []hit // lines of the last block
	hits    []hit // those of them that are still to be returned
	scanned int
	misses  int // lines with a literal that did not match
	passed  int // bytes in which they were found
	alone   bool
}

// NewMatcher returns a matcher that gives up, without a match, once stop says so. stop is asked after each line or
// block, and within a line after some work.
func NewMatcher(p *Program, stop func() bool) *Matcher {
	return &Matcher{p: p, stop: stop, finder: finder{needles: &p.need}, alone: len(p.need.list) == 0}
}

// Begin takes a buffer of lines, for Next.
func (m *Matcher) Begin(buf []byte) {
	m.hits, m.scanned = nil, 0
	if !m.alone {
		m.finder.reset(buf)
	}
}

// Next returns the next matching line that begins at or behind from, which is the start of a line: its start, and its
// end without the LF. Lines without a literal that the pattern needs are never looked at.
func (m *Matcher) Next(buf []byte, from int) (start, end int, ok bool) {
	for from < len(buf) {
		if m.alone {
			return m.scan(buf, from)
		}
		at := m.finder.find(from)
		if at < 0 {
			return 0, 0, false
		}
		start = from + bytes.LastIndexByte(buf[from:at], '\n') + 1
		end = len(buf)
		if i := bytes.IndexByte(buf[at:], '\n'); i >= 0 {
			end = at + i
		}
		if m.p.need.plain || m.Match(buf[start:end]) {
			return start, end, true
		}
		m.misses++
		m.passed += end + 1 - from
		m.alone = m.misses >= enoughMisses && m.passed < m.misses*sparseMisses
		if from = end + 1; m.stop() {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// scan is Next without literals: the automaton reads all.
func (m *Matcher) scan(buf []byte, from int) (start, end int, ok bool) {
	d := m.automaton()
	for {
		for len(m.hits) > 0 {
			h := m.hits[0]
			if m.hits = m.hits[1:]; h.at >= from {
				return h.at, h.to, true
			}
		}
		at := max(m.scanned, from)
		if at >= len(buf) || d.stopped {
			return 0, 0, false
		}
		to := min(at+blockSize, len(buf))
		if i := bytes.LastIndexByte(buf[at:to], '\n'); i >= 0 {
			to = at + i + 1
		} else if i := bytes.IndexByte(buf[to:], '\n'); i >= 0 {
			to += i + 1
		} else {
			m.scanned = len(buf) // a last line without an LF
			if d.line(buf[at:]) && !d.stopped {
				return at, len(buf), true
			}
			return 0, 0, false
		}
		m.found = d.scan(buf[at:to], m.found[:0])
		m.hits = m.found
		for i := range m.hits {
			m.hits[i].at += at
			m.hits[i].to += at
		}
		if m.scanned = to; m.stop() {
			return 0, 0, false
		}
	}
}

// Match decides about one line, without its LF.
func (m *Matcher) Match(line []byte) bool {
	d := m.automaton()
	return d.line(line) && !d.stopped
}

func (m *Matcher) automaton() *automaton {
	if m.auto == nil {
		m.auto = newAutomaton(m.p, m.stop)
	}
	return m.auto
}

// MayMatch says whether a text has one of the literals that each match needs. It takes the text as Begin does.
func (m *Matcher) MayMatch(text []byte) bool {
	if len(m.p.need.list) == 0 {
		return true
	}
	m.finder.reset(text)
	return m.finder.find(0) >= 0
}

// FindMultiline returns the leftmost match of a pattern of multiline mode that begins at from or later. With start it
// may stop once it knows where the match begins; its end then means nothing.
func (m *Matcher) FindMultiline(text []byte, from int, start bool) (Span, bool) {
	from, ok := m.automaton().search(text, from)
	if !ok {
		return Span{}, false
	}
	return m.slow().find(text, from, start)
}

// Start returns where the first match of a line begins that is not empty; 0 if there is none.
func (m *Matcher) Start(line []byte) int {
	if m.p.nullable {
		if spans := m.Spans(line, 1); len(spans) > 0 {
			return spans[0].From
		}
		return 0
	}
	s, ok := m.slow().find(line, 0, true)
	if ok && s.From < len(trimCR(line)) {
		return s.From
	}
	return 0
}

// Spans returns where the matches of a line are: leftmost first, without overlap, none empty, at most limit (0: all).
// The CR of a line's end is in none of them.
func (m *Matcher) Spans(line []byte, limit int) []Span {
	text := len(trimCR(line))
	var out []Span
	for from := 0; from <= len(line); {
		s, ok := m.slow().find(line, from, false)
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

func (m *Matcher) slow() *threads {
	if m.threads == nil {
		m.threads = newThreads(m.p, m.automaton().alphabet, m.stop)
	}
	return m.threads
}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }
