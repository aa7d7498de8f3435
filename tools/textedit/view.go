package textedit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// A view is the content as old text is compared with it, and the way back to the bytes of the file.
type view struct {
	text  []byte
	from  int // offset in the file of text[0]
	folds []fold
}

// A fold is a place where the view is shorter than the file.
type fold struct {
	after int // offset in the view behind the short form
	lost  int // bytes that the view has left out up to there
}

// raw returns the offset in the file of an offset in the view. The short form itself begins where the long one does,
// and what follows it begins behind the long one, so a match takes a long form whole.
func (v view) raw(at int) int {
	n, _ := slices.BinarySearchFunc(v.folds, at+1, func(f fold, t int) int { return cmp.Compare(f.after, t) })
	if n == 0 {
		return v.from + at
	}
	return v.from + at + v.folds[n-1].lost
}

// foldView makes the view of src, which begins at offset from of the file, in which each \r\n is a \n and, if quotes,
// each typographic quote a straight one.
func foldView(src []byte, from int, quotes bool) view {
	v := view{from: from}
	lost, copied := 0, 0
	for i := 0; i < len(src); {
		short, size := shortForm(src[i:], quotes)
		if size == 0 {
			i++
			continue
		}
		if v.text == nil {
			v.text = make([]byte, 0, len(src))
		}
		v.text = append(append(v.text, src[copied:i]...), short)
		i += size
		copied, lost = i, lost+size-1
		v.folds = append(v.folds, fold{after: len(v.text), lost: lost})
	}
	if copied == 0 {
		v.text = src
		return v
	}
	v.text = append(v.text, src[copied:]...)
	return v
}

// shortForm returns the byte that stands in a view for the first bytes of b, and how many those are; 0: b starts with
// something that stands for itself.
func shortForm(b []byte, quotes bool) (short byte, size int) {
	switch {
	case b[0] == '\r' && len(b) > 1 && b[1] == '\n':
		return '\n', 2
	case quotes && b[0] == 0xe2 && len(b) > 2 && b[1] == 0x80:
		switch b[2] {
		case 0x98, 0x99, 0xb2: // ‘ ’ ′
			return '\'', 3
		case 0x9c, 0x9d, 0xb3: // “ ” ″
			return '"', 3
		}
	}
	return 0, 0
}

// foldEnds is a string with each \r\n as \n. A \r alone stays, even before a pair; so a string must not be folded
// twice.
func foldEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// plainView returns a view and old as it is spelled in it, without folding the content if that can be avoided: old is
// on one line, or the file has no \r\n, or it has nothing else.
func plainView(content []byte, old string) (view, []byte) {
	from := len(mark(content))
	text := content[from:]
	if !strings.ContainsAny(old, "\r\n") || bytes.IndexByte(text, '\r') < 0 {
		return view{text: text, from: from}, []byte(old)
	}
	pairs := bytes.Count(text, []byte("\r\n"))
	if pairs == 0 {
		return view{text: text, from: from}, []byte(old)
	}
	if pairs == bytes.Count(text, newline) && !strings.Contains(old, "\r") {
		return view{text: text, from: from}, []byte(strings.ReplaceAll(old, "\n", "\r\n"))
	}
	return foldView(text, from, false), []byte(old)
}
