package seen

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// A Span is a range of bytes, [From, To). An empty one covers nothing.
type Span struct{ From, To int64 }

// Lines is a range of lines, counted from 1, both ends included.
type Lines struct{ From, To int }

// maxSpans is how many ranges of one file are remembered: about 100 KB in a record, of which a Store
// holds 256 KiB. Those behind it are forgotten and must be shown again.
const maxSpans = 4096

// A View is what of a file is shown at once. The zero View shows nothing of an empty file, which is all of it.
type View struct {
	spans []Span // normal
	size  int64
	form  string // in which it was shown; "": the usual one
}

// ViewOf is the view of these spans (none: the whole file; an empty Span: nothing of it) of a file of that many bytes.
// What is outside the file does not count.
func ViewOf(size int64, spans ...Span) View {
	if len(spans) == 0 {
		return View{spans: wholeOf(size), size: size}
	}
	return View{spans: normal(spans, size), size: size}
}

// In is the same view in a form that has that name: the same spans in another form are another view.
func (v View) In(form string) View {
	v.form = form
	return v
}

// Whole says whether v shows all of the file.
func (v View) Whole() bool { return isWhole(v.spans, v.size) }

// name names the spans and the form in few bytes.
func (v View) name() string {
	h := sha256.New()
	h.Write([]byte(v.form))
	for _, s := range v.spans {
		fmt.Fprintf(h, "%d-%d,", s.From, s.To)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

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

// LinesIn returns the lines of content that spans cover with their ends, in order, and how many there are in all. The
// spans are those of a Record, or a single one.
func LinesIn(content []byte, spans ...Span) (seen []Lines, total int) {
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
