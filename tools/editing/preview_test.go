package editing

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/tool"
)

// A big change was cut twice, so that a question said of a part of it how much of that was left out, and dropped the
// rest in silence. Whatever the room, what is shown and what is said to be left out is the whole change.
func TestPreviewCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	lines := func(n int, word string) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s %d\n", word, i)
		}
		return []byte(b.String())
	}
	left := regexp.MustCompile(`(?m)^\[(\d[\d,]*) (removed|added) lines? (?:is|are) not shown\]$`)
	for name, changes := range map[string][]filestate.Change{
		"rewritten":   {{Old: lines(300, "an old line of some length"), New: lines(20, "new")}},
		"new":         {{New: lines(1_000, "new")}},
		"small":       {{Old: lines(3, "old"), New: lines(3, "new")}},
		"large":       {{Old: lines(9_000, "old"), New: lines(9_000, "new")}}, // the diff itself is cut
		"long lines":  {{Old: []byte(strings.Repeat("x", 50_000) + "\n"), New: []byte(strings.Repeat("ö", 50_000) + "\n")}},
		"three files": {{Old: lines(300, "old"), New: lines(1, "new")}, {Old: lines(2, "old"), New: lines(1, "new")}, {New: lines(500, "new")}},
	} {
		for _, room := range []int{400, 1_000, 3_500, 400_000} {
			text := PreviewChanges(changes, func(i int) string { return "f" + strconv.Itoa(i) }, room)
			counts := map[string]int{}
			for line := range strings.SplitSeq(text, "\n") {
				if m := left.FindStringSubmatch(line); m != nil {
					n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
					counts[m[2]] += n
				}
				if line != "" && strings.IndexByte("+-", line[0]) >= 0 {
					counts[map[byte]string{'+': "added", '-': "removed"}[line[0]]]++
				}
			}
			var plus, minus int
			for _, c := range changes {
				p, m := c.LinesChanged()
				plus, minus = plus+p, minus+m
			}
			if counts["added"] != plus || counts["removed"] != minus {
				t.Errorf("%s in %d: %v of %d and %d:\n%.600s", name, room, counts, plus, minus, text)
			}
			if n := utf8.RuneCountInString(text) + tool.DetailsIndent*(strings.Count(text, "\n")+1); n > room {
				t.Errorf("%s: %d characters in a room of %d:\n%.600s", name, n, room, text)
			}
		}
	}
}
