package results

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// How many lines a preview shows: of the beginning, where a program says what it does; of the end, where it says how
// that went; and between them of those that look like a failure.
const (
	previewHead  = 20
	previewTail  = 40
	previewMarks = 20
)

// previewLine is how many bytes of one line a preview looks at.
const previewLine = 4 << 10

// previewWidths are the characters of a line that are tried until a preview fits.
var previewWidths = []int{500, 250, 120, 80}

// Preview shows lines of an output that is too long for f: the first 20, the last 40, and up to 20 between them that
// look like a failure, each with its number. It reads out, which is all that file holds, to its end. false: reading
// failed, the output has no more lines than that, or they do not fit.
func Preview(file Spool, out io.Reader, f Form) (text string, ok bool) {
	p := preview{file: file, in: bufio.NewReaderSize(out, 64<<10)}
	if err := p.read(); err != nil || p.lines <= previewHead+previewTail+previewMarks {
		return "", false
	}
	first := tooLarge(file.Bytes, file.Lines) + readOn(file.Path, file.Gap) + "\n"
	for _, width := range previewWidths {
		if text = first + p.show(width); f.Fits(text) {
			return text, true
		}
	}
	return "", false
}

// A preview is an output that is being read.
type preview struct {
	file  Spool
	in    *bufio.Reader
	lines int
	head  []string
	tail  [previewTail]line // the line with number n is at n modulo its length
	marks [2][]line         // the first that look like a failure, the first that look like a warning
	found int               // lines that look like either, but for those of head
}

// A line is one of an output. Its number counts from 1; 0: none.
type line struct {
	n     int
	text  string
	alike int // 0: nothing; 1: a failure; 2: a warning
}

func (p *preview) read() error {
	for {
		raw, err := p.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.lines++
		l := line{p.lines, "", looksLike(raw)}
		if p.lines <= previewHead {
			p.head = append(p.head, string(raw))
			continue
		}
		l.text = string(raw)
		p.tail[p.lines%previewTail] = l
		if l.alike > 0 {
			p.found++
			// The last ones may turn out to be of the tail.
			if of := &p.marks[l.alike-1]; len(*of) < previewMarks+previewTail {
				*of = append(*of, l)
			}
		}
	}
}

// next returns the beginning of the next line, without its end. It is valid until the next call.
func (p *preview) next() ([]byte, error) {
	part, err := p.in.ReadSlice('\n')
	if len(part) == 0 && err != nil {
		return nil, err
	}
	start := part[:min(len(part), previewLine)]
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimSuffix(start, []byte("\n")), nil // an error comes again
	}
	start = bytes.Clone(start) // the buffer is used for the rest
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = p.in.ReadSlice('\n')
	}
	return start, nil
}

// show is the preview with at most width characters of a line.
func (p *preview) show(width int) string {
	var b strings.Builder
	for _, text := range p.head {
		b.WriteString(p.file.previewed(text, width) + "\n")
	}
	last := p.lines - previewTail
	tail, found := make([]line, 0, previewTail), p.found
	for n := last + 1; n <= p.lines; n++ {
		l := p.tail[n%previewTail]
		if tail = append(tail, l); l.alike > 0 {
			found--
		}
	}
	marks := p.between(last)
	switch out := fmt.Sprintf("lines %s-%s are left out", Count(previewHead+1), Count(last)); {
	case len(marks) == 0:
		b.WriteString("[" + out + "]\n")
	case len(marks) < found:
		fmt.Fprintf(&b, "[%s, but for %d of %s that look like failures]\n", out, len(marks), Count(found))
	default:
		b.WriteString("[" + out + ", but for these that look like failures]\n")
	}
	for _, l := range marks {
		fmt.Fprintf(&b, "%d: %s\n", l.n, p.file.previewed(l.text, width))
	}
	if len(marks) > 0 {
		fmt.Fprintf(&b, "[lines %s-%s]\n", Count(last+1), Count(p.lines))
	}
	for _, l := range tail {
		b.WriteString(p.file.previewed(l.text, width) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// between returns the lines up to last that look like a failure, and, if there is room, like a warning, in order.
func (p *preview) between(last int) []line {
	var taken [2][]line
	room := previewMarks
	for i, all := range p.marks {
		for _, l := range all {
			if l.n <= last && room > 0 {
				taken[i], room = append(taken[i], l), room-1
			}
		}
	}
	var marks []line
	for a, b := taken[0], taken[1]; len(a)+len(b) > 0; {
		if len(b) == 0 || len(a) > 0 && a[0].n < b[0].n {
			marks, a = append(marks, a[0]), a[1:]
		} else {
			marks, b = append(marks, b[0]), b[1:]
		}
	}
	return marks
}

// previewed is one line as it is shown: clean, not like one of ours, and cut to width characters.
func (s Spool) previewed(raw string, width int) string {
	text := strings.TrimSuffix(s.Printed(raw), "\n")
	more := utf8.RuneCountInString(text) - width
	if more <= 0 {
		return text
	}
	return text[:Form{Runes: width}.prefix(text)] + fmt.Sprintf("... (truncated, %d more characters)", more)
}

// Words of lines that look like a failure or the first of a stack, and of those that look like a warning. They are
// searched as they stand: an output may have millions of lines, and an expression takes a thousand times as long.
var (
	failureWords = words("error", "Error", "ERROR", "fail", "Fail", "FAIL", "panic", "PANIC", "fatal", "Fatal", "FATAL",
		"xception", "raceback", "[running]", "not ok ", "egmentation fault", "assert", "Assert", "xpected", "✕",
		"✗")
	warningWords = words("warning", "Warning", "WARN", "warn:")
	got, want    = []byte("got"), []byte("want")
)

func words(all ...string) [][]byte {
	var w [][]byte
	for _, one := range all {
		w = append(w, []byte(one))
	}
	return w
}

// looksLike says what a line looks like: 0 nothing, 1 a failure, 2 a warning.
func looksLike(raw []byte) int {
	switch {
	case slices.ContainsFunc(failureWords, func(w []byte) bool { return tells(raw, w) }),
		bytes.Contains(raw, want) && bytes.Contains(raw, got):
		return 1
	case slices.ContainsFunc(warningWords, func(w []byte) bool { return tells(raw, w) }):
		return 2
	}
	return 0
}

// tells says that a line has a word, and not only as in "0 errors" or "no failures".
func tells(raw, word []byte) bool {
	for from := 0; ; {
		at := bytes.Index(raw[from:], word)
		if at < 0 {
			return false
		}
		before := bytes.TrimSuffix(raw[:from+at], []byte(" "))
		if len(before) == from+at || !bytes.HasSuffix(before, []byte("no")) && !endsWithZero(before) {
			return true
		}
		from += at + len(word)
	}
}

// endsWithZero says that text ends with the number 0.
func endsWithZero(text []byte) bool {
	n := len(text)
	return n > 0 && text[n-1] == '0' && (n == 1 || text[n-2] < '0' || text[n-2] > '9')
}
