package search

import (
	"bytes"
	"path"
	"slices"

	"codehand/tools/search/define"
	"codehand/tools/search/pattern"
)

// hit takes a matching line; spans of its matches if they are known.
func (s *scanner) hit(buf []byte, at, to int, spans []pattern.Span) bool {
	if !s.sink.count(1) || s.q.Mode == FilesOnly {
		return over
	}
	if s.q.Mode == Count || s.counted {
		return goOn
	}
	s.contextAfter(buf, at)
	if s.after = 0; s.sink.full {
		return goOn
	}
	s.contextBefore(buf, at)
	s.emit(buf, at, to, false, spans)
	s.after = s.q.After
	return goOn
}

// contextAfter emits the lines behind the last match that are still owed, up to a place.
func (s *scanner) contextAfter(buf []byte, limit int) {
	for ; s.after > 0 && s.shown < limit; s.after-- {
		to := s.shown + bytes.IndexByte(buf[s.shown:limit], '\n')
		s.emit(buf, s.shown, to, true, nil)
	}
}

// contextBefore emits the lines before a match that were not emitted yet.
func (s *scanner) contextBefore(buf []byte, at int) {
	from := at
	for n := 0; n < s.q.Before && from > s.shown; n++ {
		from = max(bytes.LastIndexByte(buf[:from-1], '\n')+1, s.shown)
	}
	for from < at {
		to := from + bytes.IndexByte(buf[from:at], '\n')
		s.emit(buf, from, to, true, nil)
		from = to + 1
	}
}

// emit hands one line to the sink.
func (s *scanner) emit(buf []byte, at, to int, context bool, spans []pattern.Span) {
	l := Line{N: s.number(at), Context: context}
	s.shown = to + 1
	text := bytes.TrimSuffix(buf[at:to], []byte{'\r'})
	first := 0
	var name struct{ from, to int } // of what the line defines
	if s.q.Rank != nil && !context && !s.q.Multiline {
		name.from, name.to = define.Name(path.Ext(s.sink.e.rel), text)
	}
	switch {
	case context:
	case spans == nil && (s.q.Spans || name.to > 0):
		spans = s.m.Spans(buf[at:to], 0)
	case spans == nil && len(text) > s.q.MaxLine:
		first = s.m.Start(buf[at:to])
	}
	if len(spans) > 0 {
		first = spans[0].From
	}
	l.From, l.To, l.Cut = window(text, first, s.q.MaxLine)
	l.Text = string(text[l.From:l.To])
	l.Defines = slices.ContainsFunc(spans, func(s pattern.Span) bool { return s.From < name.to && name.from < s.To })
	if s.q.Spans && !context {
		l.Spans = within(spans, l.From, l.To)
	}
	s.sink.add(l)
}

// within gives the parts of spans that lie in a window, relative to it.
func within(spans []pattern.Span, from, to int) []pattern.Span {
	var out []pattern.Span
	for _, s := range spans {
		if f, t := max(s.From, from), min(s.To, to); f < t {
			out = append(out, pattern.Span{From: f - from, To: t - from})
		}
	}
	return out
}
