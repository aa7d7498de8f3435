package blackbox

import (
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestApprovalsInChromium: a client that cannot ask has its calls approved on the page of serve: on a phone and a desk,
// light and dark, by keyboard alone, without script, by one of two browsers, and not by a page of another port.
func TestApprovalsInChromium(t *testing.T) {
	t.Parallel()
	long(t)
	h := settle(t)
	if confinedLevel(t, h) < 2 {
		unavailable(t, "commands are not confined here")
	}
	cmd := chromiumBy(t, "approvals.mjs", "--url", h.serve().url)
	conversed(t, cmd, func(string) (string, bool) { return "", false })
}

// TestConsoleInChromium: what the page shows of changes and of what runs is found, read, stopped and taken back on a phone
// and a desk, light and dark, by keyboard alone and without script, and so are calls paused, mode and rules of a session
// set and its hand-over copied; names, commands and contents that are markup stay text; and codehand page lets in the
// browser that was given its address.
func TestConsoleInChromium(t *testing.T) {
	t.Parallel()
	long(t)
	h := settle(t)
	if confinedLevel(t, h) < 2 {
		unavailable(t, "commands are not confined here")
	}
	// 1,000 calls are made in a row.
	replaytest.Lay(t, h.home, map[string]string{".config/codehand/config.toml": "[quota.default]\ncalls_per_minute = 0\n"})
	page := startDaemon(t, h.command("page"))
	cmd := chromiumBy(t, "console.mjs", "--url", h.serve().url, "--page", page.url+"/?"+page.said(t, `key=\w+`))
	conversed(t, cmd, func(line string) (string, bool) {
		figure := strings.HasPrefix(line, "# ")
		if figure {
			t.Log(line)
		}
		return "", figure
	})
}
