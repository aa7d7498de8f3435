package textedit

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// A place that is found in a stream is the one that Apply changes; and one that Apply finds exactly is found in a
// stream, whatever its parts are.
func TestFindOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 6))
	found := 0
	for range 20000 {
		text := func(n int) string {
			var b strings.Builder
			for range random.IntN(n) {
				b.WriteString([]string{"a", "b", "\n", "é"}[random.IntN(4)])
			}
			return b.String()
		}
		content, e := text(60), Edit{Old: text(6), New: "x"}
		at, ok, err := findOnce(strings.NewReader(content), e, 1+random.IntN(9))
		if err != nil {
			t.Fatal(err)
		}
		_, report, failed := Apply([]byte(content), []Edit{e})
		want := e.Old != "" && failed == nil && strings.Contains(content, e.Old)
		if ok != want {
			t.Fatalf("%q in %q: found %t, but Apply says %v", e.Old, content, ok, failed)
		}
		if !ok {
			continue
		}
		found++
		if int(at.At) != strings.Index(content, e.Old) || at.Len != len(e.Old) || at.Line+1 != report.Edits[0].Lines[0] {
			t.Fatalf("%q in %q: found at %+v, Apply changed line %d", e.Old, content, at, report.Edits[0].Lines[0])
		}
	}
	if found < 1000 {
		t.Errorf("only %d were found", found)
	}
}

// What a stream cannot say is left to Apply.
func TestFindOnceLeaves(t *testing.T) {
	large := strings.Repeat("line\n", 1000)
	for name, c := range map[string]struct {
		text string
		e    Edit
	}{
		"every occurrence":       {"a\n", Edit{Old: "a", All: true}},
		"an expected number":     {"a\na\n", Edit{Old: "a", Expect: 2}},
		"nothing to replace":     {"", Edit{New: "a"}},
		"the end of a file":      {"a\n", Edit{Old: "a", Hunk: &Hunk{AtEnd: true}}},
		"what stands twice":      {"a\n" + large + "a\n", Edit{Old: "a", New: "b"}},
		"what is not there":      {large, Edit{Old: "none"}},
		"lines that end in CRLF": {large + "a\r\nb\r\n", Edit{Old: "a\nb", New: "c"}},
		"binary":                 {"a\x00b", Edit{Old: "a", New: "c"}},
		"UTF-16":                 {"\xff\xfea\x00", Edit{Old: "a", New: "c"}},
		"a character not seen":   {"a\n", Edit{Old: "a", New: "ä"}},
		"what was no character":  {"a\xff\n", Edit{Old: "a\ufffd", New: "b"}},
	} {
		if at, ok, err := FindOnce(strings.NewReader(c.text), int64(len(c.text)), c.e); ok || err != nil {
			t.Errorf("%s: found %+v, %v", name, at, err)
		}
	}
	if at, ok, _ := FindOnce(bytes.NewReader([]byte("\xef\xbb\xbfa\nb\r\nc")), 8, Edit{Old: "b", New: "d"}); !ok || at.Line != 1 {
		t.Errorf("one line of a file with a mark is %+v, %t", at, ok)
	}
}
