package server

import (
	"regexp"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestPageLimits: a person sees how much of each limit their sessions use now, which tells why a call was refused with
// RATE_LIMITED.
func TestPageLimits(t *testing.T) {
	t.Parallel()
	x := serveHTTP(t, siteSetup{})
	b, c := browserOn(t, x), onHTTP(t, x, "", false, replaytest.Undeclared)
	for range 3 {
		c.Call("list_files", `{}`, replaytest.Never(t))
	}
	_, text := b.get("/activity")
	row := regexp.MustCompile(`<code>burst</code>.*<meter min="0" max="100" value="\d" aria-label="burst"></meter>` +
		`</td><td>\d of 100</td>`)
	if !row.MatchString(text) || !strings.Contains(text, " of 32 MiB</td>") ||
		strings.Contains(text, "<code>sessions</code>") {
		t.Errorf("the page shows %s", text)
	}
}
