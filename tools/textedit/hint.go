package textedit

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

const (
	// hintBytes is how much of the content hints look at: some 50 ms of work at most.
	hintBytes = 4 << 20
	// hintLines is how many lines a hint shows.
	hintLines = 10
	// maxShown is how many runes of a line, or of a spelling, are shown.
	maxShown = 200
	// replayBytes is how many bytes may be gone through again to find the edit that changed a missing text.
	replayBytes = 64 << 20
)

// Cascades says that Apply refuses an edit because of those before it.
func Cascades(earlier []Edit, e Edit) bool { return e.Hunk == nil && checkCascade(earlier, e) != nil }

// checkCascade refuses an edit whose Old, without its last line ends, is part of the New of an earlier one.
func checkCascade(earlier []Edit, e Edit) error {
	old := strings.TrimRight(foldEnds(e.Old), "\n")
	if old == "" {
		return nil
	}
	for i, before := range earlier {
		if strings.Contains(foldEnds(before.New), old) {
			return &CascadeError{By: i}
		}
	}
	return nil
}

// explain fills in why e.Old is missing after the earlier edits of content, whose file has an encoding of that name.
func explain(missing *NotFoundError, content []byte, encoding string, earlier []Edit, e Edit) {
	if missing.Under != "" || missing.Line > 0 {
		return // where it is, is known
	}
	if len(content)*len(earlier) <= replayBytes {
		missing.ChangedBy, missing.From, missing.To = changedBy(content, earlier, e)
	}
	if missing.ChangedBy == 0 {
		// The content on disk, not the working copy: the caller can read only that.
		find := hint
		if e.Hunk != nil {
			find = hunkHint
		}
		missing.Hint = find(content, encoding, foldEnds(e.Old))
	}
}

// changedBy does the earlier edits again and returns the last one before which e.Old was there, and where it was.
func changedBy(content []byte, earlier []Edit, e Edit) (edit, from, to int) {
	c := &copyOf{content: content, limit: max(maxContent, len(content)), trail: trail{lost: true}}
	for i, before := range earlier {
		if t, ok := find(c.content, e, nil); ok {
			edit = i + 1
			from = 1 + bytes.Count(t.view.text[:t.at], newline)
			to = from + bytes.Count(bytes.TrimSuffix(t.needle, newline), newline)
		}
		if _, err := c.apply(i, before); err != nil {
			break
		}
	}
	return edit, from, to
}

// hint says what may be wrong with old, which is not in content: the first of the known reasons that applies.
func hint(content []byte, encoding, old string) string {
	return firstOf(content, encoding, old, foreign, numbered, spaced, cased, nearest)
}

// hunkHint is hint for the lines of a hunk, which are whole.
func hunkHint(content []byte, encoding, old string) string {
	return firstOf(content, encoding, old, foreign, numbered, partly, spaced, cased, nearest)
}

func firstOf(content []byte, encoding, old string, reasons ...func([]byte, string) string) string {
	if unmatchable(content, old) {
		return "The line holds bytes that are not " + encoding + "; choose text without them."
	}
	content = content[len(mark(content)):]
	if len(content) > hintBytes {
		content = content[:1+bytes.LastIndexByte(content[:hintBytes], '\n')]
	}
	for _, reason := range reasons {
		if text := reason(content, old); text != "" {
			return text
		}
	}
	return ""
}

// foreign is about text that is there with letters of an encoding that is not known: each byte of them is shown as
// U+FFFD.
func foreign(content []byte, old string) string {
	if utf8.Valid(content) || len(old) == utf8.RuneCountInString(old) {
		return ""
	}
	var pattern strings.Builder
	letters := false
	for _, r := range old {
		if r < utf8.RuneSelf {
			pattern.WriteString(regexp.QuoteMeta(string(r)))
		} else if !letters {
			pattern.WriteString(`[^\x00-\x7f]+`)
		}
		letters = r >= utf8.RuneSelf
	}
	loose, err := regexp.Compile(pattern.String())
	if err != nil { // it is too long
		return ""
	}
	for _, at := range loose.FindAllIndex(content, hintLines) {
		if !utf8.Valid(content[at[0]:at[1]]) {
			return "Line " + strconv.Itoa(lineOf(content, at[0])) + " has bytes that are not UTF-8 where old_string " +
				"has letters beyond ASCII; choose text without these."
		}
	}
	return ""
}

var numberPrefix = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[ \t]*(\d+)(\t|→)`) })

// numbered is about line numbers that were copied from a view of the file.
func numbered(content []byte, old string) string {
	var bare strings.Builder
	arrow := false
	for line := range strings.Lines(old) {
		m := numberPrefix().FindStringSubmatch(line)
		if m == nil {
			return ""
		}
		arrow = m[2] == "→"
		bare.WriteString(line[len(m[0]):])
	}
	// A table may have numbers in its first column: without them the text must be there, at least by its words.
	if squeezed := squeeze([]byte(bare.String())); !bytes.Contains(squeeze(content), squeezed) {
		return ""
	}
	if arrow {
		return `Remove the "N→" prefixes.`
	}
	return `Remove the "N<TAB>" prefixes.`
}

// partly is about lines that are there, but for white space, as parts of longer ones. It looks at each place once:
// short lines may be at very many.
func partly(content []byte, old string) string {
	wanted, squeezed := squeeze([]byte(old)), squeeze(content)
	if len(wanted) == 0 {
		return ""
	}
	at := offsets(content)
	parted := func(i int) bool { // a line ends before byte i of squeezed
		return i == 0 || i == len(at) || bytes.IndexByte(content[at[i-1]:at[i]], '\n') >= 0
	}
	part := -1 // where the first is, in squeezed
	for i := 0; ; i++ {
		next := bytes.Index(squeezed[i:], wanted)
		if next < 0 {
			break
		}
		i += next
		if parted(i) && parted(i+len(wanted)) {
			return ""
		}
		if part < 0 {
			part = i
		}
	}
	if part < 0 {
		return ""
	}
	from, to := lineOf(content, int(at[part])), lineOf(content, int(at[part+len(wanted)-1]))
	return "It is there as part of longer lines, and a hunk has whole lines. The file has (→ is a tab, · a space at " +
		"the end of a line):\n" + show(content, from, to)
}

// offsets returns for each byte of squeeze(text) where it is in text.
func offsets(text []byte) []int32 { // of at most hintBytes
	all := make([]int32, 0, len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		for n := range size {
			if !unicode.IsSpace(r) {
				all = append(all, int32(i+n))
			}
		}
		i += size
	}
	return all
}

// spaced is about text that is there with other white space.
func spaced(content []byte, old string) string {
	wanted := squeeze([]byte(old))
	if len(wanted) == 0 {
		return ""
	}
	at := bytes.Index(squeeze(content), wanted)
	if at < 0 {
		return ""
	}
	from := unsqueeze(content, at)
	to := unsqueeze(content, at+len(wanted)-1)
	text := "It matches when white space is ignored. The file has (→ is a tab, · a space at the end of a line):\n" +
		show(content, lineOf(content, from), lineOf(content, to))
	if strings.HasSuffix(old, "\n") && bytes.IndexByte(content[to:], '\n') < 0 {
		text += "\n(no newline at the end)"
	}
	return text
}

// squeeze is text without its white space.
func squeeze(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if !unicode.IsSpace(r) {
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return out
}

// unsqueeze returns the offset in text of the byte that has offset n in squeeze(text).
func unsqueeze(text []byte, n int) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if !unicode.IsSpace(r) {
			if n < size {
				return i
			}
			n -= size
		}
		i += size
	}
	return len(text)
}

// cased is about text that is there in other case.
func cased(content []byte, old string) string {
	lower := bytes.ToLower(foldView(content, 0, false).text)
	wanted := bytes.ToLower([]byte(old))
	at := bytes.Index(lower, wanted)
	if at < 0 {
		return ""
	}
	from := lineOf(lower, at)
	to := from + bytes.Count(bytes.TrimSuffix(wanted, newline), newline)
	return "It matches when case is ignored. The file has:\n" + show(content, from, to)
}

// lineOf returns the line, from 1, of an offset.
func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], newline) }

// wideBlanks spells the blanks of a line that look like others as the escapes that stand for them in old text.
func wideBlanks(line string) string {
	var b strings.Builder
	for _, r := range line {
		if r >= utf8.RuneSelf && unicode.IsSpace(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// show returns lines from to to of content, at most hintLines, each with its number, with tabs and blanks at the end
// made visible.
func show(content []byte, from, to int) string {
	var b strings.Builder
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if number < from {
			continue
		}
		if number > to || number == from+hintLines {
			break
		}
		text := string(bytes.TrimSuffix(bytes.TrimSuffix(line, newline), []byte("\r")))
		body := strings.TrimRight(text, " \t")
		body += strings.ReplaceAll(text[len(body):], " ", "·")
		body = strings.ReplaceAll(wideBlanks(strings.ToValidUTF8(body, "\ufffd")), "\t", "→")
		fmt.Fprintf(&b, "%d: %s\n", number, cut(body, maxShown))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
