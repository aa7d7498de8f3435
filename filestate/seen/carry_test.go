package seen

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/disk"
)

func TestRewritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, now string
		want           []Lines
	}{
		{"nothing", "a\nb\n", "a\nb\n", nil},
		{"one line", "a\nb\nc\n", "a\nX\nc\n", []Lines{{2, 2}}},
		{"two places", "a\nb\nc\nd\ne\n", "X\nb\nc\nY\nZ\ne\n", []Lines{{1, 1}, {4, 5}}},
		{"added at the end", "a\n", "a\nb\nc\n", []Lines{{2, 3}}},
		{"taken away", "a\nb\nc\n", "a\nc\n", []Lines{{2, 2}}},
		{"the last taken away", "a\nb\n", "a\n", []Lines{{1, 1}}},
		{"all taken away", "a\nb\n", "", []Lines{{1, 1}}},
		{"only an end of line", "a\nb", "a\nb\n", []Lines{{2, 2}}},
		{"from nothing", "", "a\nb", []Lines{{1, 2}}},
	} {
		if got := Rewritten([]byte(c.old), []byte(c.now)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestClash(t *testing.T) {
	t.Parallel()
	const old, now = "a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n" // the third line was changed
	for next, want := range map[string]bool{
		"1\nb\nX\nd\ne\n":       false,
		"a\n2\nX\n4\ne\n":       false,
		"a\nb\nY\nd\ne\n":       true,
		"a\nb\nd\ne\n":          true,
		"a\n2\n3\n4\ne\n":       true,
		"a\nb\nX\nnew\nd\ne\n":  false,
		"a\nb\nnew\nX\nd\ne\n":  false,
		"a\nb\nX\nd\ne\nf":      false,
		"":                      true,
		"a\nb\nX and more\nd\n": true,
	} {
		if got := Clash([]byte(old), []byte(now), []byte(next)); got != want {
			t.Errorf("%q: %v, want %v", next, got, want)
		}
	}
	if !Clash([]byte("a\nb\nc\n"), []byte("a\nc\n"), []byte("1\n3\n")) {
		t.Error("an edit across a line that was taken away")
	}
}

// What is carried over was seen in the old content, and stands in the new one: a line is known only if the very same
// line was.
func TestCarriedProperty(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a\n", "b\n", "c\n", "d\n", "e\n", "\n"}
	content := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(words[r.IntN(len(words))])
		}
		if r.IntN(4) == 0 {
			b.WriteString("end")
		}
		return b.String()
	}
	for range 20_000 {
		old, now := content(), content()
		view := ViewOf(int64(len(old)), Span{int64(r.IntN(len(old) + 1)), int64(r.IntN(len(old) + 1))})
		var rec *Record
		rec = rec.See(disk.DigestOf([]byte(old)), disk.Stamp{Size: int64(len(old))}, view)
		next := rec.Carried([]byte(old), Content{Bytes: []byte(now), Size: int64(len(now)), Sum: disk.DigestOf([]byte(now))}, disk.Stamp{})
		if next.Size != int64(len(now)) || next.Hash != disk.DigestOf([]byte(now)) {
			t.Fatalf("a record of %d bytes", next.Size)
		}
		for _, s := range next.Spans {
			part := now[s.From:s.To]
			for line := range strings.Lines(part) {
				if !slices.ContainsFunc(rec.Spans, func(o Span) bool { return strings.Contains(old[o.From:o.To], line) }) {
					t.Fatalf("old %q, seen %v, now %q: %q counts as seen", old, rec.Spans, now, line)
				}
			}
		}
		if got := Clash([]byte(old), []byte(now), []byte(now)); got {
			t.Fatalf("a change of nothing clashes: %q %q", old, now)
		}
	}
}
