package leaktest

import (
	"os"
	"testing"
)

// Long says whether tests run whole, with floods and figures of time: CODEHAND_LONG=1. Otherwise each behaviour is
// tested with as little work as shows it.
func Long() bool { return os.Getenv("CODEHAND_LONG") == "1" }

// OnlyLong skips a test unless tests run whole. why completes the sentence "it …", as in "measures times".
func OnlyLong(t testing.TB, why string) {
	t.Helper()
	if !Long() {
		t.Skipf("it %s; CODEHAND_LONG=1 runs it", why)
	}
}

// Rounds is how often a test does something: short, or whole if tests run whole.
func Rounds(short, whole int) int {
	if Long() {
		return whole
	}
	return short
}
