package filestate

import (
	"bytes"
	"cmp"
	"slices"
)

// A Span is a range of bytes, [From, To). An empty one covers nothing.
type Span struct{ From, To int64 }

// maxSpans is how many ranges of one file are remembered: about 100 KB in a record, of which a Store
// holds 256 KiB. Those behind it are forgotten and must be shown again.
const maxSpans = 4096

// normal returns spans in order, cut to [0, size), and joined where they touch.
func normal(spans []Span, size int64) []Span {
	all := make([]Span, 0, len(spans))
	for _, s := range spans {
		if s = (Span{max(s.From, 0), min(s.To, size)}); s.From < s.To {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out[:min(len(out), maxSpans)]
}

// wholeOf covers a content of that size.
func wholeOf(size int64) []Span { return normal([]Span{{0, size}}, size) }

// isWhole says whether normal spans cover a content of that size. Nothing covers an empty one.
func isWhole(spans []Span, size int64) bool {
	return size == 0 || len(spans) == 1 && spans[0] == Span{0, size}
}

// covers says whether normal spans cover all of want.
func covers(spans []Span, want Span) bool {
	i, found := slices.BinarySearchFunc(spans, want.From, func(s Span, at int64) int { return cmp.Compare(s.From, at) })
	if !found {
		i--
	}
	return want.From >= want.To || i >= 0 && spans[i].To >= want.To
}

// seenLines returns the lines that normal spans cover with their ends, and how many there are in all.
func seenLines(content []byte, spans []Span) (seen []Lines, total int) {
	for from := 0; from < len(content); {
		to := len(content)
		if i := bytes.IndexByte(content[from:], '\n'); i >= 0 {
			to = from + i + 1
		}
		total++
		if covers(spans, Span{int64(from), int64(to)}) {
			if n := len(seen); n > 0 && seen[n-1].To == total-1 {
				seen[n-1].To = total
			} else {
				seen = append(seen, Lines{total, total})
			}
		}
		from = to
	}
	return seen, total
}
