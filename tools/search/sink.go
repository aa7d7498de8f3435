package search

const (
	flushText  = 256 << 10 // bytes of texts that a worker holds back before the collector gets them
	flushLines = 4096
)

// A sink takes the hits of one file after the other from one worker to the collector.
type sink struct {
	c     *collector
	q     *GrepQuery
	e     *entry
	check func() bool // asks whether anyone may know of the file; called at its first match
	hits  int         // since the last flush
	all   int
	asked bool
	may   bool
	full  bool // further lines are only counted
	lines []Line
	text  int
}

// start begins a file.
func (s *sink) start(e *entry, check func() bool) {
	*s = sink{c: s.c, q: s.q, e: e, check: check, lines: s.lines[:0]}
}

// allowed asks once.
func (s *sink) allowed() bool {
	if !s.asked {
		s.asked, s.may = true, s.check()
	}
	return s.may
}

// count takes matches. false: the file must not be mentioned.
func (s *sink) count(n int) bool {
	if s.all == 0 {
		if !s.allowed() {
			return false
		}
		if s.q.Mode != Count {
			s.full = !s.c.open(s.e)
		}
	}
	s.hits += n
	s.all += n
	if most := s.q.most(); s.c.byLine && most > 0 && s.all > most {
		s.full = true // this file alone has enough
	}
	if s.full && s.q.Mode == Lines && s.hits >= flushLines {
		s.flush()
	}
	return true
}

// add takes a line that belongs to the matches counted.
func (s *sink) add(l Line) {
	s.lines = append(s.lines, l)
	if s.text += len(l.Text); s.text >= flushText || len(s.lines) >= flushLines {
		s.flush()
	}
}

func (s *sink) flush() {
	s.full = !s.c.give(s.e, s.hits, s.lines) || s.full
	clear(s.lines)
	s.lines, s.hits, s.text = s.lines[:0], 0, 0
}

// end closes the file.
func (s *sink) end() {
	if s.all == 0 {
		return
	}
	if s.q.Mode == Count {
		s.c.open(s.e)
	}
	s.flush()
}
