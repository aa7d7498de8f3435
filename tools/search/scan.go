package search

import (
	"bytes"
	"io"

	"codehand/tools/search/pattern"
)

// binaryHead is how much of a file is looked at for a NUL that makes it binary, in bytes.
const binaryHead = 64 << 10

// A scanner finds the matches of one file after the other. It belongs to one worker.
type scanner struct {
	q    *GrepQuery
	m    *pattern.Matcher
	src  source
	sink *sink

	// Of the file in hand; offsets are in the buffer.
	named   bool // by the query
	counted bool // binary, named by the query: matches are only counted
	line    int  // number of the line at lineAt
	lineAt  int
	shown   int // behind the last line that was emitted
	after   int // lines of context that are still to come
	traits  traits
}

// traits are what the Coverage says about a file.
type traits struct{ binary, partial, tooLarge, longLine bool }

// A verdict of a step: go on, or the file is done.
const (
	goOn = true
	over = false
)

// read searches one open file.
func (s *scanner) read(f io.Reader, named bool) error {
	defer s.src.close()
	s.traits = traits{}
	if err := s.src.start(f); err != nil {
		return err
	}
	return s.file(named)
}

// file searches the file that src has begun. The error is one of reading; what was found before it stands.
func (s *scanner) file(named bool) error {
	s.named, s.counted = named, false
	s.line, s.lineAt, s.shown, s.after = 1, 0, 0, 0
	head := s.src.buf[:min(s.src.n, binaryHead)]
	if bytes.IndexByte(head, 0) >= 0 {
		s.traits.binary = true
		switch {
		case named:
			s.counted = true
			s.sink.e.hits.Binary = true
		case s.src.eof && !s.q.Multiline:
			s.traits.binary = s.any()
			return nil
		default:
			return nil
		}
	}
	if s.q.Multiline {
		return s.whole()
	}
	return s.chunks()
}

// any says whether a binary file of one chunk has a match that is left out.
func (s *scanner) any() bool {
	buf := s.src.buf[:s.src.n]
	s.m.Begin(buf)
	_, _, ok := s.m.Next(buf, 0)
	return ok && s.sink.allowed()
}

// chunks searches line by line, one buffer after the other.
func (s *scanner) chunks() error {
	from := 0 // lines before it were searched and are kept for context
	for {
		end, cut, err := s.wholeLines(from)
		if err != nil {
			return err
		}
		nul := -1
		if !s.named {
			nul = bytes.IndexByte(s.src.buf[from:end], 0)
		}
		if nul >= 0 {
			s.traits.partial = true
			end = from + bytes.LastIndexByte(s.src.buf[from:from+nul], '\n') + 1
		}
		if !s.lines(from, end) {
			return nil
		}
		if s.src.halt.stopped() {
			return errStopped
		}
		if nul >= 0 {
			return nil
		}
		if cut {
			s.number(end)
			s.lineAt, s.shown, from = 0, 0, 0
			if err := s.src.skipLine(); err != nil {
				return err
			}
		} else {
			from = s.keep(end)
		}
		if s.src.eof && from == s.src.n {
			return nil
		}
		if err := s.src.fill(); err != nil {
			return err
		}
	}
}

// wholeLines returns where the whole lines of the buffer end. A line that fills it makes the buffer grow; one that is
// too long is cut, and ends there with an LF of ours.
func (s *scanner) wholeLines(from int) (end int, cut bool, err error) {
	for {
		buf := s.src.buf[:s.src.n]
		if s.src.eof {
			if n := len(buf); n > from && buf[n-1] != '\n' {
				s.src.buf[n] = '\n'
				s.src.n++
			}
			return s.src.n, false, nil
		}
		if i := bytes.LastIndexByte(buf[from:], '\n'); i >= 0 {
			return from + i + 1, false, nil
		}
		grown, err := s.src.grow(from + maxLineBytes)
		if err != nil {
			return 0, false, err
		}
		if !grown {
			s.traits.longLine = true
			s.src.buf[s.src.n] = '\n'
			s.src.n++
			return s.src.n, true, nil
		}
		if err := s.src.fill(); err != nil {
			return 0, false, err
		}
	}
}

// keep drops what was searched but for the lines that may be context, and returns where the new lines begin.
func (s *scanner) keep(end int) int {
	front := end
	for range s.q.Before {
		if front == 0 || end-front > maxBefore {
			break
		}
		front = bytes.LastIndexByte(s.src.buf[:front-1], '\n') + 1
	}
	if end-front > maxBefore {
		front = end
	}
	s.move(front)
	return end - front
}

// move drops the front of the buffer.
func (s *scanner) move(front int) {
	if s.lineAt < front {
		s.number(front)
	}
	s.lineAt -= front
	s.shown = max(s.shown-front, 0)
	s.src.drop(front)
}

// number returns the number of the line that begins at a place, which is not before the last one asked for.
func (s *scanner) number(at int) int {
	if s.q.Mode == Lines && at > s.lineAt {
		s.line += bytes.Count(s.src.buf[s.lineAt:at], []byte{'\n'})
		s.lineAt = at
	}
	return s.line
}

// lines searches whole lines.
func (s *scanner) lines(from, end int) bool {
	buf := s.src.buf[:end]
	s.m.Begin(buf)
	for {
		at, to, ok := s.m.Next(buf, from)
		if !ok {
			break
		}
		if goOn := s.hit(buf, at, to, nil); !goOn {
			return over
		}
		from = to + 1
	}
	s.contextAfter(buf, end)
	return goOn
}
