package results

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"codehand/tools/secrets"
)

// Fence puts foreign text (a page, hits of a search) between two unpredictable lines, so that it cannot pass for the
// server's words. It removes controls, shows invisible characters, masks secrets, and puts a `\` before lines that look
// like ours. Our own words stand before the first mark.
func Fence(text string) string {
	return fence(text, func() string {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		return hex.EncodeToString(b[:])
	})
}

// fence draws marks until one does not occur in the text.
func fence(text string, draw func() string) string {
	text = strings.Trim(Printed(secrets.Masked(text)), "\n")
	mark := draw()
	for strings.Contains(text, mark) {
		mark = draw()
	}
	line := "--- untrusted content " + mark + " ---"
	return line + "\n" + text + "\n" + line
}
