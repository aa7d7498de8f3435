package splices

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"codehand/filestate/lines"
)

const (
	context  = 3        // unchanged lines that Narrow leaves around a difference
	lineMost = 64 << 10 // bytes in which an end of a line is looked for
)

// A Splice is a change of one place of a large content: what stands there, and what comes in its place.
type Splice struct {
	At       int64  // offset of Old
	Line     int    // lines in front of it
	Old, New []byte // whole lines where lines are not very long, so that they show the change; only read
}

// A List is splices of one content in the order of their places. Between two of them is at least one byte.
type List []Splice

// Between is the change of one content into another that is in memory, too, with the lines around it.
func Between(old, now []byte) Splice { return Splice{Old: old, New: now}.Narrow() }

func (s Splice) end() int64 { return s.At + int64(len(s.Old)) }

// grows is how many bytes, and how many lines, the content gets more.
func (s Splice) grows() (size int64, lines int) {
	return int64(len(s.New) - len(s.Old)), bytes.Count(s.New, newline) - bytes.Count(s.Old, newline)
}

var newline = []byte("\n")

// differs is the bytes of Old that are not New, and those of New in their place.
func (s Splice) differs() (from, to, newTo int) {
	from = lines.Prefix(s.Old, s.New)
	tail := lines.Suffix(s.Old[from:], s.New[from:])
	return from, len(s.Old) - tail, len(s.New) - tail
}

// Narrow is the splice with fewer lines around what differs.
func (s Splice) Narrow() Splice {
	from, to, newTo := s.differs()
	from = back(s.Old, from)
	behind := ahead(s.Old[to:])
	return Splice{
		At: s.At + int64(from), Line: s.Line + bytes.Count(s.Old[:from], newline),
		Old: s.Old[from : to+behind], New: s.New[from : newTo+behind],
	}
}

// back is where the line at an offset begins, or some lines in front of it.
func back(text []byte, at int) int {
	least := max(0, at-lineMost)
	end := at
	for range context + 1 {
		i := bytes.LastIndexByte(text[least:max(least, end)], '\n')
		switch {
		case i >= 0:
			at, end = least+i+1, least+i
		case least == 0:
			return 0
		default:
			return at
		}
	}
	return at
}

// ahead is where the first line of a text ends, or some lines behind it.
func ahead(text []byte) (at int) {
	most := text[:min(len(text), lineMost)]
	for range context + 1 {
		i := bytes.IndexByte(most[at:], '\n')
		if i < 0 && len(most) == len(text) {
			return len(text)
		}
		if i < 0 {
			return at
		}
		at += i + 1
	}
	return at
}

// Hull is the bytes of the old content from the first that differs to the last.
func (l List) Hull() (from, to int64) {
	first, last := l[0], l[len(l)-1]
	start, _, _ := first.differs()
	_, end, _ := last.differs()
	return first.At + int64(start), last.At + int64(end)
}

// Grows is how many bytes the content gets more.
func (l List) Grows() (size int64) {
	for _, s := range l {
		more, _ := s.grows()
		size += more
	}
	return size
}

// Bytes is how many bytes the splices hold.
func (l List) Bytes() (size int) {
	for _, s := range l {
		size += len(s.Old) + len(s.New)
	}
	return size
}

// Narrow is all splices with fewer lines around what differs.
func (l List) Narrow() List {
	out := make(List, len(l))
	for i, s := range l {
		out[i] = s.Narrow()
	}
	return out
}

// Back is what makes the old content of the new one.
func (l List) Back() List {
	out := make(List, len(l))
	size, count := int64(0), 0
	for i, s := range l {
		out[i] = Splice{At: s.At + size, Line: s.Line + count, Old: s.New, New: s.Old}
		more, moreLines := s.grows()
		size, count = size+more, count+moreLines
	}
	return out
}

// With is l and then a splice of the content that l makes, as splices of the content before l.
func (l List) With(s Splice) List {
	var size int64 // of what l adds in front of the place
	var count int
	first := 0
	for ; first < len(l) && l[first].At+size+int64(len(l[first].New)) < s.At; first++ {
		more, moreLines := l[first].grows()
		size, count = size+more, count+moreLines
	}
	joined := Splice{At: s.At - size, Line: s.Line - count, New: s.New}
	at := s.At // up to here of the content that l makes
	old := func(to int64) []byte { return s.Old[at-s.At : max(at, min(to, s.end()))-s.At] }
	last := first
	for ; last < len(l) && l[last].At+size <= s.end(); last++ {
		from := l[last].At + size
		to := from + int64(len(l[last].New))
		if from < s.At {
			joined.At, joined.Line = l[last].At, l[last].Line
			joined.New = slices.Concat(l[last].New[:s.At-from], joined.New)
		} else {
			joined.Old = slices.Concat(joined.Old, old(from))
		}
		joined.Old = slices.Concat(joined.Old, l[last].Old)
		if to > s.end() {
			joined.New = slices.Concat(joined.New, l[last].New[s.end()-from:])
		}
		at = max(at, min(to, s.end()))
		more, _ := l[last].grows()
		size += more
	}
	joined.Old = slices.Concat(joined.Old, old(s.end()))
	return slices.Concat(l[:first], List{joined}, l[last:])
}

// WithAll is l and then splices of the content that l makes.
func (l List) WithAll(next List) List {
	for _, s := range slices.Backward(next) { // the last first, so that those in front of it keep their places
		l = l.With(s)
	}
	return l
}

// Apply is what the splices make of a content that is in memory. false: at a place is something else than Old.
func (l List) Apply(content []byte) (made []byte, ok bool) {
	var at int64
	for _, s := range l {
		if s.At < at || s.end() > int64(len(content)) || !bytes.Equal(content[s.At:s.end()], s.Old) {
			return nil, false
		}
		made = append(append(made, content[at:s.At]...), s.New...)
		at = s.end()
	}
	return append(made, content[at:]...), true
}

// A Reader reads the content that splices make of another one. It is safe for concurrent use if that is.
type Reader struct {
	from io.ReaderAt
	was  int64
	list List
}

// Read returns the content that l makes of one of that size.
func (l List) Read(from io.ReaderAt, size int64) *Reader { return &Reader{from, size, l} }

// Size is that of the new content.
func (r *Reader) Size() int64 { return r.was + r.list.Grows() }

// ReadAt reads as io.ReaderAt says.
func (r *Reader) ReadAt(p []byte, off int64) (n int, err error) {
	var done int64 // of the new content
	var at int64   // of the old one
	piece := func(size int64, read func(p []byte, skip int64) (int, error)) {
		if skip := off + int64(n) - done; err == nil && n < len(p) && skip >= 0 && skip < size {
			var got int
			got, err = read(p[n:min(int64(len(p)), int64(n)+size-skip)], skip)
			if n += got; errors.Is(err, io.EOF) && skip+int64(got) == size {
				err = nil
			}
		}
		done += size
	}
	old := func(p []byte, skip int64) (int, error) { return r.from.ReadAt(p, at+skip) }
	for _, s := range r.list {
		piece(s.At-at, old)
		piece(int64(len(s.New)), func(p []byte, skip int64) (int, error) { return copy(p, s.New[skip:]), nil })
		at = s.end()
	}
	piece(r.was-at, old)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// LinesChanged counts the lines that come and go.
func (l List) LinesChanged() (added, removed int) {
	for _, s := range l {
		from, to, _ := s.differs()
		a, r := lines.Changed(s.Old, s.New, from, len(s.Old)-to)
		added, removed = added+a, removed+r
	}
	return added, removed
}
