package results

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a person may read is cut to its limit, both ends stay, and what is missing is counted.
func TestCutMiddle(t *testing.T) {
	t.Parallel()
	if got := CutMiddle("", -1) + CutMiddle("ab", -1); got != "ab" {
		t.Errorf("got %q", got)
	}
	for _, n := range []int{100, 101, 4000} {
		fits := strings.Repeat("ö", n)
		if got := CutMiddle(fits, n); got != fits {
			t.Errorf("%d: a text that fits is cut", n)
		}
		got := CutMiddle("a"+strings.Repeat("ö", 1_000_000)+"z", n)
		if c := utf8.RuneCountInString(got); c > n || got[0] != 'a' || got[len(got)-1] != 'z' || !strings.Contains(got, " characters in the middle are not shown]\n") {
			t.Errorf("%d: %d characters", n, c)
		}
	}
}
