package results

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Frame puts text of strangers (web pages, mounted servers) between two lines with a mark that it cannot know, so that
// nothing in it can look like its end, or like words of ours: those stand before the first line. text is clean already.
func Frame(text string) string { return frame(text, mark) }

// frame draws marks until one does not occur in text, in whatever case.
func frame(text string, draw func() string) string {
	low := strings.ToLower(text)
	m := draw()
	for strings.Contains(low, m) {
		m = draw()
	}
	line := frameLine + m + " ---\n"
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return line + text + line
}

const frameLine = "--- untrusted content "

// mark returns 16 random hex digits.
func mark() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(b[:])
}
