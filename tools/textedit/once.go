package textedit

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// onceStep is how many bytes Once reads at a time.
const onceStep = 1 << 20

// A Once is where a text that is read in a stream has the only place that an edit would change.
type Once struct {
	At   int64 // where Old begins
	Len  int   // its bytes
	Line int   // lines in front of that line
}

// FindOnce looks for the only place of e.Old in text, of that size, without all of it in memory. ok is true only if
// Apply would find that place and no other, and around it needs to know nothing of the text but its lines there. Of a
// hunk the caller must know that its Old is whole lines, and that it comes behind the hunk before it. Of what else
// there is to say about an edit, Apply knows it. The error is that of reading.
func FindOnce(text io.Reader, size int64, e Edit) (found Once, ok bool, err error) {
	return findOnce(text, e, int(min(onceStep, size+1)))
}

func findOnce(text io.Reader, e Edit, step int) (found Once, ok bool, err error) {
	needle := []byte(foldEnds(e.Old))
	placed := e.Hunk != nil && (e.Hunk.Insert || e.Hunk.AtEnd || len(e.Hunk.Under) > 0)
	if placed || e.All || e.Expect > 1 || len(needle) == 0 || bytes.ContainsRune(needle, '\r') ||
		bytes.ContainsRune(needle, utf8.RuneError) || strings.ContainsFunc(e.New, func(r rune) bool {
		return r >= utf8.RuneSelf && !strings.ContainsRune(e.Old, r) // whether the file can hold that, all of it says
	}) {
		return Once{}, false, nil
	}
	several := bytes.Contains(needle, newline)
	buf := make([]byte, len(needle)-1+step)
	found.At, found.Len = -1, len(needle)
	keep, from, line := 0, int64(0), 0
	for first := true; ; first = false {
		n, err := io.ReadFull(text, buf[keep:])
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return Once{}, false, err
		}
		part := buf[:keep+n]
		if first && !plain(part) || several && bytes.IndexByte(part, '\r') >= 0 {
			return Once{}, false, nil
		}
		at := bytes.Index(part, needle)
		if at >= 0 && (found.At >= 0 || bytes.Contains(part[at+1:], needle)) {
			return Once{}, false, nil
		}
		if at >= 0 {
			found.At, found.Line = from+int64(at), line+bytes.Count(part[:at], newline)
		}
		if ended {
			return found, found.At >= 0, nil
		}
		keep = min(len(needle)-1, len(part))
		line += bytes.Count(part[:len(part)-keep], newline)
		from += int64(len(part) - keep)
		copy(buf, part[len(part)-keep:])
	}
}

// plain says that a file which starts with head is UTF-8, with a mark or without.
func plain(head []byte) bool {
	e, err := Detect(head)
	return err == nil && e.set == utf8Set
}
