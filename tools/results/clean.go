package results

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes text of a program safe to show: valid UTF-8, escape sequences and controls removed, progress lines
// collapsed, invisible characters shown as escapes. It is pure, and a second time it changes nothing.
func Clean(text string) string { return clean(text, func(shown string) string { return shown }) }

// Printed is Clean of what a program printed, without lines that look like ours: see Disown. It has as many lines as
// Clean of the same text.
func Printed(text string) string { return clean(text, Disown) }

// clean is Clean. own sees all that is shown, but for progress lines, which begin with a note of ours.
//
// The order matters: bytes that are not UTF-8 look like 8-bit introducers to a parser of escape sequences, so they go
// first; an overstrike is only seen once the colours between its characters are gone.
func clean(text string, own func(shown string) string) string {
	if harmless(text) {
		return own(text)
	}
	text = stripSequences(validUTF8(text))
	if !strings.Contains(text, "\r") {
		return own(visible(text))
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, end := line, ""
		if strings.HasSuffix(line, "\n") {
			body, end = strings.TrimRight(line[:len(line)-1], "\r"), "\n"
		}
		body, noted := overwritten(body)
		if body = visible(body); !noted {
			body = own(body)
		}
		b.WriteString(body)
		b.WriteString(end)
	}
	return b.String()
}

// visible resolves overstrikes, removes controls and shows what cannot be seen.
func visible(text string) string {
	shown, _ := reveal(strings.Map(removed, overstrike(text)))
	return shown
}

// Show makes text of a file safe to show: valid UTF-8, every control and invisible character shown as an escape
// (`\x1b`, `\u202e`). n counts the escapes. It is pure, and a second time it changes nothing. U+FEFF is always shown:
// at the start of a file it is a byte order mark, which the decoder of the file removes.
func Show(text string) (shown string, n int) {
	if harmless(text) {
		return text, 0
	}
	return reveal(validUTF8(text))
}

// ShowDiff is Show of a diff. It is not exact if two lines that differ look the same then, since one has the escape
// where the other has the character: then the diff does not show what has changed.
func ShowDiff(diff string) (shown string, exact bool) {
	shown, n := Show(diff)
	if n == 0 {
		return shown, true
	}
	was := make(map[string]string)
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line[1:], "\n") // without the sign
		looks, _ := Show(line)
		if other, ok := was[looks]; ok && other != line {
			return shown, false
		}
		was[looks] = line
	}
	return shown, true
}

// harmless is the fast way out for most texts: printable ASCII, tabs and line ends.
func harmless(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && c != '\t' && c != '\n' {
			return false
		}
	}
	return true
}

// validUTF8 replaces each byte that is no UTF-8 by U+FFFD; strings.ToValidUTF8 would replace a run of them by one.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(r) // a bad byte is read as U+FFFD
	}
	return b.String()
}

// maxString is how many bytes the end of a control string may be away from its beginning.
const maxString = 1 << 20

// stripSequences removes escape sequences. One that is not complete within its line loses only its introducer, because
// a parser would swallow the text after it (x/ansi v0.11.9: Strip takes everything up to the end of the input).
func stripSequences(text string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, ansi.ESC)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at])
		text = text[at+sequence(text[at:]):]
	}
}

// sequence returns how many bytes at the beginning of text, which is an ESC, are to be removed.
func sequence(text string) int {
	if len(text) < 2 {
		return 1
	}
	switch text[1] {
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC
		return controlString(text)
	}
	seq, _, _, _ := ansi.DecodeSequence(text[:sequenceEnd(text)], ansi.NormalState, nil)
	last := seq[len(seq)-1]
	switch {
	case text[1] == '[' && (len(seq) < 3 || last < '@' || last > '~'):
		return 2
	case len(seq) < 2 || last < '0' || last > '~':
		return 1
	}
	return len(seq)
}

// sequenceEnd limits what the decoder sees to bytes that can belong to a sequence: printable ASCII after the ESC.
func sequenceEnd(text string) int {
	for i := 1; i < len(text); i++ {
		if text[i] < ' ' || text[i] > '~' || i == maxString {
			return i
		}
	}
	return len(text)
}

// controlString handles the sequences that end with ST (ESC \ or U+009C), an OSC also with BEL.
func controlString(text string) int {
	const st8 = "\u009c"
	body := text[2:min(len(text), maxString)]
	for i := range len(body) {
		switch c := body[i]; {
		case c == ansi.BEL && text[1] == ']':
			return 2 + i + 1
		case c == ansi.ESC && strings.HasPrefix(body[i:], "\x1b\\"):
			return 2 + i + 2
		case c == st8[0] && strings.HasPrefix(body[i:], st8):
			return 2 + i + len(st8)
		case c == '\n' || c == ansi.ESC || c == ansi.CAN || c == ansi.SUB:
			return 2
		}
	}
	return 2
}

// progressParts is how many states of one line make it a progress display. Fewer are kept as lines of their own, so
// that a CR hides nothing.
const progressParts = 3

// overwritten is the last state of a line that was written over and over, with a note before it.
func overwritten(line string) (shown string, noted bool) {
	var parts []string
	for part := range strings.SplitSeq(line, "\r") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) < progressParts {
		return strings.ReplaceAll(line, "\r", "\n"), false
	}
	return "[" + strconv.Itoa(len(parts)-1) + " progress states overwritten] " + parts[len(parts)-1], true
}

// overstrike resolves bold (c BS c) and underlined text (_ BS c) as man pages have it. Other backspaces are shown.
func overstrike(text string) string {
	if !strings.Contains(text, "\b") {
		return text
	}
	var b strings.Builder
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		if runes[i] == '\b' {
			b.WriteString(`\x08`)
			continue
		}
		// Each pass drops the first character of a pair: bold may be struck more than twice.
		for i+2 < len(runes) && runes[i+1] == '\b' && runes[i+2] != '\b' &&
			(runes[i] == runes[i+2] || runes[i] == '_') {
			i += 2
		}
		b.WriteRune(runes[i])
	}
	return b.String()
}

// removed drops the controls that have no meaning in a text, and the soft hyphen.
func removed(r rune) rune {
	if isControl(r) || r == softHyphen {
		return -1
	}
	return r
}
