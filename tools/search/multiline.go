package search

import (
	"bytes"
	"unicode/utf8"

	"codehand/tools/search/pattern"
)

// whole searches a file as one text, for patterns whose matches may span lines.
func (s *scanner) whole() error {
	for !s.src.eof {
		grown, err := s.src.grow(maxWhole)
		if err != nil {
			return err
		}
		if !grown {
			s.traits.tooLarge = true
			return nil
		}
		if err := s.src.fill(); err != nil {
			return err
		}
	}
	text := s.src.buf[:s.src.n]
	if !s.named {
		if nul := bytes.IndexByte(text, 0); nul >= 0 {
			s.traits.partial = true
			text = text[:bytes.LastIndexByte(text[:nul], '\n')+1]
		}
	}
	if !s.m.MayMatch(text) {
		return nil
	}
	s.matches(text)
	if s.src.halt.stopped() {
		return errStopped
	}
	return nil
}

// matches takes one match after the other. In mode Lines a match is all lines that it touches, each of them once.
func (s *scanner) matches(text []byte) {
	var open block
	for from := 0; from <= len(text); {
		m, ok := s.m.FindMultiline(text, from, s.q.Mode == FilesOnly)
		if !ok || m.From == len(text) && (m.From == 0 || text[m.From-1] == '\n') {
			break
		}
		if s.q.Mode != Lines {
			if !s.sink.count(1) || s.q.Mode == FilesOnly {
				return
			}
		} else if !s.touch(text, &open, m) {
			return
		}
		if from = m.To; m.From == m.To {
			_, n := utf8.DecodeRune(text[m.From:])
			from += max(n, 1)
		}
	}
	if open.set && s.closeBlock(text, &open) {
		s.contextAfter(terminated(text), len(terminated(text)))
	}
}

// A block is the line in hand: another match may touch it.
type block struct {
	set    bool
	at, to int // to is without the LF
	spans  []pattern.Span
}

// touch takes the lines of a match.
func (s *scanner) touch(text []byte, open *block, m pattern.Span) bool {
	last := max(m.To-1, m.From)
	for at := bytes.LastIndexByte(text[:m.From], '\n') + 1; at <= last; {
		to := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			to = at + i
		}
		if !open.set || open.at != at {
			if open.set && !s.closeBlock(text, open) {
				return over
			}
			*open = block{set: true, at: at, to: to}
		}
		end := at + len(bytes.TrimSuffix(text[at:to], []byte{'\r'}))
		if f, t := max(m.From, at), min(m.To, end); f < t {
			open.spans = append(open.spans, pattern.Span{From: f - at, To: t - at})
		}
		at = to + 1
	}
	return goOn
}

func (s *scanner) closeBlock(text []byte, open *block) bool {
	spans := open.spans
	if spans == nil {
		spans = []pattern.Span{}
	}
	open.set = false
	return s.hit(terminated(text), open.at, open.to, spans)
}

// terminated is text with an LF at its end, for which a buffer has room.
func terminated(text []byte) []byte {
	if len(text) == 0 || text[len(text)-1] == '\n' {
		return text
	}
	return append(text[:len(text):len(text)+1], '\n')
}
