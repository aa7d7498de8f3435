package instructions

import (
	"slices"
	"strings"
	"testing"
)

// TestEnumerate: names are cut between names, and never beyond what fits.
func TestEnumerate(t *testing.T) {
	t.Parallel()
	names := []string{"aaa", "bbb", "ccc"}
	for room, want := range map[int]string{
		100: "x: aaa, bbb, ccc.", 13: "x: aaa, bbb, ccc.", 12: "x", 18: "x: aaa, bbb, ccc.",
	} {
		if got := enumerate("x", ": ", names, room); got != want {
			t.Errorf("%d: %q, want %q", room, got, want)
		}
	}
	long := slices.Repeat([]string{"abcdefghij"}, 40)
	if got := enumerate("x", ": ", long, 100); got != "x: "+strings.Join(long[:7], ", ")+" and 33 more." {
		t.Errorf("%q", got)
	}
	if got := enumerate(strings.Repeat("x", maxInstructions-5), ": ", names, 100); len(got) > maxInstructions || strings.Contains(got, "aaa") {
		t.Errorf("%d bytes", len(got))
	}
	if got := enumerate("x", ": ", nil, 100); got != "x" {
		t.Errorf("%q", got)
	}
}
