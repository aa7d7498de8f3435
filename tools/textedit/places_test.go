package textedit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The places of a report and the bytes between them make the new content, and the diff made of them is right.
func TestPlacesRandom(t *testing.T) {
	r := source(t)
	for range 10_000 {
		alphabet := alphabets[r.IntN(4)]
		content := randomText(r, alphabet, 20) + strings.Repeat(randomText(r, alphabet, 3)+"\n", r.IntN(60)) + randomText(r, alphabet, 20)
		if r.IntN(4) == 0 {
			content = "\xef\xbb\xbf" + content
		}
		var edits []Edit
		for i := range 1 + r.IntN(4) {
			e := randomEdit(r, content, alphabet)
			e.New = string(rune('0'+i)) + strings.Repeat("\n", r.IntN(3))
			edits = append(edits, e)
		}
		got, report, err := Apply([]byte(content), edits)
		if err != nil {
			continue
		}
		if report.Places == nil { // too many
			continue
		}
		var made []byte
		at := 0
		for _, p := range report.Places {
			made = append(made, content[at:p.OldFrom]...)
			if len(made) != p.NewFrom {
				t.Fatalf("%q, %#v: %+v, and the new content has %d bytes before it", content, edits, p, len(made))
			}
			made = append(made, got[p.NewFrom:p.NewTo]...)
			at = p.OldTo
		}
		if made = append(made, content[at:]...); !bytes.Equal(made, got) {
			t.Fatalf("%q, %#v: places %+v make %q, want %q", content, edits, report.Places, made, got)
		}
		text, whole := DiffAt([]byte(content), got, report.Places, 1<<20)
		if complaint := checkDiff(content, string(got), text); !whole || complaint != "" {
			t.Fatalf("%q, %#v: whole %t, %s\n%s", content, edits, whole, complaint, text)
		}
		if plain, _ := Diff([]byte(content), got, 1<<20); len(plain) < len(text)-400 {
			t.Fatalf("%q, %#v:\n%s\nis much longer than\n%s", content, edits, text, plain)
		}
	}
}

// Two lines that are far apart in a file too large to be compared whole are shown.
func TestDiffAtLarge(t *testing.T) {
	middle := strings.Repeat("the same line\n", 3<<20)
	content := []byte("first\n" + middle + "last\n")
	got, report, err := Apply(content, []Edit{{Old: "first", New: "1st\n2nd"}, {Old: "last", New: "end"}})
	if err != nil {
		t.Fatal(err)
	}
	text, whole := DiffAt(content, got, report.Places, 8192)
	same := strings.Repeat("\n the same line", 3)
	lines := 3 << 20
	want := "@@ -1,4 +1,5 @@\n-first\n+1st\n+2nd" + same + fmt.Sprintf("\n@@ -%d,4 +%d,4 @@", lines-1, lines) + same + "\n-last\n+end"
	if !whole || text != want {
		t.Errorf("whole %t, got\n%s\nwant\n%s", whole, text, want)
	}
}

// Where there are too many places to follow, all is compared.
func TestDiffAtMany(t *testing.T) {
	content := strings.Repeat("a\n", 2*maxPlaces)
	got, report, err := Apply([]byte(content), []Edit{{Old: "a", New: "b", All: true}})
	if err != nil || report.Places != nil {
		t.Fatalf("%d places, %v; want none", len(report.Places), err)
	}
	text, whole := DiffAt([]byte(content), got, report.Places, 1<<20)
	if complaint := checkDiff(content, string(got), text); !whole || complaint != "" {
		t.Errorf("whole %t, %s", whole, complaint)
	}
}

// A hundred edits of a file of 10 MB took 1 GB: what followed their places kept the content that each of them had made.
func TestTrailKeepsNoContent(t *testing.T) {
	c, err := newCopy([]byte("a b c d e"), maxContent)
	for i, e := range []Edit{{Old: "a", New: "one"}, {Old: "c", New: "three"}, {Old: "ne", New: "x"}} {
		if err == nil {
			_, err = c.apply(i, e)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.trail.pieces {
		if p.added != nil {
			t.Errorf("%q is kept", p.added)
		}
	}
	want := []Place{{0, 1, 0, 2}, {4, 5, 5, 10}}
	if got := c.trail.places(len("a b c d e")); !slices.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
}

func BenchmarkDiffAt(b *testing.B) {
	for _, s := range sizes {
		content := []byte("top\n" + code(s.size, "\n") + "bottom\n")
		got, report, err := Apply(content, []Edit{{Old: "top\n", New: "up\n"}, {Old: "bottom", New: "down"}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				DiffAt(content, got, report.Places, 8192)
			}
		})
	}
}
