package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// Measures of the picture, in pixels and characters.
const (
	columns    = 96 // longer lines are wrapped
	lineHeight = 19
	charWidth  = 7.83 // of the fonts below at 13 pixels, a little more than they need
	margin     = 16
)

// Seconds between a line and the next: a reader needs longer where a new call begins.
const (
	callPause = 1.6
	linePause = 0.12
)

// shown is the session that a page shows.
func shown(page string) (string, error) {
	_, rest, found := strings.Cut(page, "<!-- session:begin -->\n```text\n")
	session, _, closed := strings.Cut(rest, "```\n<!-- session:end -->")
	if !found || !closed {
		return "", errors.New("no session between <!-- session:begin --> and <!-- session:end -->")
	}
	return session, nil
}

// A row is one line of the picture.
type row struct {
	text, class string
	at          float64 // seconds after the begin
}

// rows are the lines of a session, wrapped, each with the time at which it appears.
func rows(session string) (all []row) {
	at, class := 0.4, ""
	for line := range strings.Lines(session) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "$ "):
			class = "person"
		case strings.HasPrefix(line, "> "):
			class = "call"
		case strings.HasPrefix(line, "! "):
			class = "refusal"
		default:
			class = "answer"
		}
		if (class == "person" || class == "call") && len(all) > 0 {
			at += callPause
		}
		for _, part := range wrap(line) {
			all = append(all, row{part, class, at})
			at += linePause
		}
	}
	return all
}

// wrap breaks a line at blanks, so that each part fits; a word that does not fit is cut.
func wrap(line string) (parts []string) {
	indent := ""
	for utf8.RuneCountInString(indent+line) > columns {
		room := columns - len(indent)
		runes := []rune(line)
		cut := strings.LastIndexByte(string(runes[:room]), ' ')
		if cut <= len("> ") {
			cut = len(string(runes[:room]))
		}
		parts = append(parts, indent+line[:cut])
		line, indent = strings.TrimPrefix(line[cut:], " "), "  "
	}
	return append(parts, indent+line)
}

// draw makes the picture. Who wants no motion sees all lines at once.
func draw(session string) []byte {
	lines := rows(session)
	width, height := columns*charWidth+2*margin, len(lines)*lineHeight+2*margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" `+
		`aria-label="A session: an edit of a file that changed meanwhile is refused, repeated, and taken back">`,
		width, height)
	b.WriteString(`
<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
text { white-space: pre; fill: #c9d1d9 }
.person { fill: #7ee787 } .call { fill: #79c0ff } .refusal { fill: #ffa657 }
@media (prefers-reduced-motion: no-preference) {
text { animation: show 0.2s both } @keyframes show { from { opacity: 0 } to { opacity: 1 } }
}
</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
`)
	for i, l := range lines {
		if strings.TrimSpace(l.text) == "" {
			continue
		}
		fmt.Fprintf(&b, `<text class="%s" x="%d" y="%d" style="animation-delay:%.2fs" xml:space="preserve">%s</text>`,
			l.class, margin, margin+(i+1)*lineHeight-5, l.at, html.EscapeString(l.text))
		b.WriteByte('\n')
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
