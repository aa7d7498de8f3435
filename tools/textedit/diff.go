package textedit

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/tools/textedit/compare"
)

const (
	// diffContext is how many unchanged lines stand around a change.
	diffContext = 3
	// diffLines is how many lines of both contents together are compared; above it only the changed range is named.
	diffLines = 300_000
	// diffBytes is the same in bytes.
	diffBytes = 32 << 20
)

// Diff returns unified hunks with 3 lines of context, without file headers, at most maxBytes long, cut at a line with
// `... (diff cut, N more lines)`. Before lines are left out, long ones are clipped, changed ones around what has
// changed. whole says that nothing was cut, no changed line was clipped, and nothing is different that is not shown but
// line ends, the mark and the encoding: see Hides. There is no line end after the last line.
//
// The lines are compared as a view of the file shows them: the encoding, the \r of a line end and the mark are no
// difference and are not shown, and each byte that is no character is shown as U+FFFD. If only those differ, the text
// is a sentence that says so. It is "" only for equal contents, or if maxBytes has no room. If so much has changed that
// comparing would take long, the text names the range of lines, and whole is false.
func Diff(old, new []byte, maxBytes int) (text string, whole bool) {
	if bytes.Equal(old, new) {
		return "", true
	}
	d, tooMuch := between(old, new)
	switch {
	case tooMuch != "":
		return fit(sentence(tooMuch), maxBytes, false)
	case len(d.changes) == 0 && d.was != d.is:
		return fit(sentence(fmt.Sprintf("(only the encoding differs: %s, now %s)", d.was, d.is)), maxBytes, !d.hides)
	case len(d.changes) == 0:
		return fit(sentence("(only line ends, the byte order mark or bytes that are not UTF-8 differ)"), maxBytes,
			!d.hides)
	}
	return fit(d.lines, maxBytes, !d.hides)
}

// Hides says that bytes which are no characters differ where a Diff shows no change.
func Hides(old, new []byte) bool {
	if utf8.Valid(old) && utf8.Valid(new) {
		return false
	}
	d, _ := between(old, new)
	return d.hides
}

// between finds what has changed between two contents. tooMuch says where, if comparing them would take long; "": it
// does not.
func between(old, new []byte) (d diff, tooMuch string) {
	before, was, lossy := legible(old, new)
	after, is, lossyToo := legible(new, old)
	a, b := changedParts(before, after)
	if a.size()+b.size() > diffBytes || a.count()+b.count() > diffLines {
		return diff{}, fmt.Sprintf("... (the changes are within %s, now %s; too much to be compared)", a.name(),
			b.name())
	}
	d = diff{old: a.split(), new: b.split(), first: a.before, was: was, is: is}
	d.changes = compare.Lines(d.old, d.new)
	d.hides = lossy || lossyToo || d.alters(a.text, b.text)
	return d, ""
}

// alters says that lines without a change are not the same bytes in both parts, line ends aside.
func (d *diff) alters(old, new []byte) bool {
	if utf8.Valid(old) && utf8.Valid(new) {
		return false
	}
	a, b := bytes.SplitAfter(old, newline), bytes.SplitAfter(new, newline)
	i, j := 0, 0
	for _, c := range append(slices.Clone(d.changes), compare.Change{OldFrom: len(d.old), NewFrom: len(d.new)}) {
		for ; i < c.OldFrom; i, j = i+1, j+1 {
			if !bytes.Equal(endless(a[i]), endless(b[j])) {
				return true
			}
		}
		i, j = c.OldTo, c.NewTo
	}
	return false
}

// endless is a line without its end.
func endless(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, newline), []byte{'\r'})
}

// sentence is a text in the place of a diff.
func sentence(text string) func(*clipping) iter.Seq[string] {
	return func(*clipping) iter.Seq[string] { return func(yield func(string) bool) { yield(text) } }
}

// legible returns content in UTF-8, and the name of its encoding. What could be in an encoding, but is too little to
// tell, is in that of the other content: it was, or will be, the same file. lossy says that U+FFFD stands for what is
// no character; in what was UTF-8 already such bytes are as they were.
func legible(content, other []byte) (text []byte, name string, lossy bool) {
	e, _ := Detect(content)
	if like, _ := Detect(other); e == (Encoding{}) && like.set >= gbk && !utf8.Valid(content) {
		e = like
	}
	if e.set == utf8Set {
		return content, e.String(), false
	}
	text, bad := e.DecodeBytes(content[e.Mark():])
	return text, e.String(), bad > 0
}

// fit joins lines. Where they exceed maxBytes, they are clipped, and cut if that is not enough. complete says whether
// all of the lines are all there is.
func fit(lines func(*clipping) iter.Seq[string], maxBytes int, complete bool) (text string, whole bool) {
	if kept, _, size := take(lines(nil), maxBytes); size <= maxBytes {
		return strings.Join(kept, "\n"), complete
	}
	// A hunk of one changed line has some eight lines and its head: those two must be among what is shown.
	clip := &clipping{most: min(max(maxBytes/16, minClip), maxClip)}
	kept, total, size := take(lines(clip), maxBytes)
	if size <= maxBytes {
		return strings.Join(kept, "\n"), complete && !clip.lost
	}
	for n := len(kept) - 1; n >= 0; n-- {
		size -= len(kept[n]) + 1
		end := fmt.Sprintf("... (diff cut, %d more lines)", total-n)
		if size+1+len(end) <= maxBytes {
			return strings.Join(append(kept[:n], end), "\n"), false
		}
	}
	return "", false
}

// take returns the lines up to the one that exceeds maxBytes, their size, and how many there are.
func take(lines iter.Seq[string], maxBytes int) (kept []string, total, size int) {
	size = -1
	for line := range lines {
		if size <= maxBytes {
			kept = append(kept, line)
			size += len(line) + 1
		}
		total++
	}
	return kept, total, size
}

// A part is what lies between the lines that two contents share at their beginnings and at their ends, with some of
// those lines as context.
type part struct {
	text   []byte
	before int // lines of the content in front of it
	lines  int // 0: not counted yet
}

func (p *part) size() int { return len(p.text) }

func (p *part) count() int {
	if p.lines == 0 {
		p.lines = bytes.Count(p.text, newline) + 1
	}
	return p.lines
}

func (p *part) name() string {
	if len(p.text) == 0 {
		return "no lines"
	}
	return fmt.Sprintf("lines %d-%d", p.before+1, p.before+bytes.Count(bytes.TrimSuffix(p.text, newline), newline)+1)
}

// changedParts finds the parts of both contents that hold every change, and the context around.
func changedParts(old, new []byte) (a, b part) {
	old, new = old[len(mark(old)):], new[len(mark(new)):]
	head := backLines(old, sameHead(old, new), diffContext)
	before := bytes.Count(old[:head], newline)
	old, new = old[head:], new[head:]
	tail := sameTail(old, new)
	same := old[len(old)-tail:]
	for range diffContext + 1 {
		i := bytes.IndexByte(same, '\n')
		if i < 0 {
			same = nil
			break
		}
		same = same[i+1:]
	}
	a = part{text: old[:len(old)-len(same)], before: before}
	b = part{text: new[:len(new)-len(same)], before: before}
	return a, b
}

// sameHead returns how many bytes a and b share at the beginning.
func sameHead[T []byte | string](a, b T) int {
	n := min(len(a), len(b))
	const step = 4096
	i := 0
	for i+step <= n && string(a[i:i+step]) == string(b[i:i+step]) { // which copies nothing
		i += step
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// sameTail returns how many bytes a and b share at the end.
func sameTail(a, b []byte) int {
	n := min(len(a), len(b))
	const step = 4096
	i := 0
	for i+step <= n && bytes.Equal(a[len(a)-i-step:len(a)-i], b[len(b)-i-step:len(b)-i]) {
		i += step
	}
	for i < n && a[len(a)-i-1] == b[len(b)-i-1] {
		i++
	}
	return i
}

// backLines returns the start of the line in which offset at is, and of so many lines before it.
func backLines(text []byte, at, lines int) int {
	at = 1 + bytes.LastIndexByte(text[:at], '\n')
	for range lines {
		if at == 0 {
			break
		}
		at = 1 + bytes.LastIndexByte(text[:at-1], '\n')
	}
	return at
}

// split returns the lines of the part as they are compared. Those that end have their \n.
func (p *part) split() []string {
	lines := make([]string, 0, p.count())
	for line := range bytes.Lines(p.text) {
		if bytes.HasSuffix(line, []byte("\r\n")) {
			line = append(bytes.Clone(line[:len(line)-2]), '\n')
		}
		text := string(line)
		if !utf8.ValidString(text) {
			text = string([]rune(text)) // one U+FFFD for each bad byte, as read_file shows them
		}
		lines = append(lines, text)
	}
	return lines
}

// A diff is the lines of two parts, and what has changed between them.
type diff struct {
	old, new []string
	first    int // lines in front of the old part
	shift    int // how many more there are in front of the new one
	changes  []compare.Change
	was, is  string // encodings; "": not asked for
	hides    bool   // see Hides
}

// lines yields the diff as text. clip may be nil: lines are as they are.
func (d *diff) lines(clip *clipping) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := d.changes; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].OldFrom-rest[n-1].OldTo <= 2*diffContext {
				n++
			}
			if !d.hunk(rest[:n], clip, yield) {
				return
			}
			rest = rest[n:]
		}
	}
}

// hunk yields some changes that stand close together.
func (d *diff) hunk(changes []compare.Change, clip *clipping, yield func(string) bool) bool {
	top, end := changes[0], changes[len(changes)-1]
	above := min(diffContext, top.OldFrom)
	below := min(diffContext, len(d.old)-end.OldTo)
	from, to := top.OldFrom-above, end.OldTo+below
	if !yield(fmt.Sprintf("@@ -%s +%s @@", span(d.first+from, to-from),
		span(d.first+d.shift+top.NewFrom-above, end.NewTo+below-(top.NewFrom-above)))) {
		return false
	}
	for _, c := range changes {
		gone, come := d.old[c.OldFrom:c.OldTo], d.new[c.NewFrom:c.NewTo]
		if !signed(' ', d.old[from:c.OldFrom], nil, clip, yield) || !signed('-', gone, come, clip, yield) ||
			!signed('+', come, gone, clip, yield) {
			return false
		}
		from = c.OldTo
	}
	return signed(' ', d.old[from:to], nil, clip, yield)
}

// span spells a range of lines in the head of a hunk: an empty one is named by the line before it.
func span(before, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return fmt.Sprint(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, lines)
}

// signed yields lines. Others are those that stand in their place on the other side.
func signed(sign byte, lines, others []string, clip *clipping, yield func(string) bool) bool {
	for i, line := range lines {
		text, ended := strings.CutSuffix(line, "\n")
		if clip != nil {
			text = clip.line(sign, text, others, i)
		}
		if !yield(string(sign) + text) {
			return false
		}
		if !ended && !yield(`\ No newline at end of file`) {
			return false
		}
	}
	return true
}
