package results

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReadPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                string
		first, lines, bytes int
		want                Page
	}{
		{"", 1, 10, 100, Page{First: 1}},
		{"a", 1, 10, 100, Page{Text: "a", First: 1, Lines: 1, Total: 1}},
		{"a\nb\n", 1, 10, 100, Page{Text: "a\nb\n", First: 1, Lines: 2, Total: 2}},
		{"a\n\nb", 2, 10, 100, Page{Text: "\nb", First: 2, Lines: 2, Total: 3}},
		{"a\nb\nc\n", 2, 1, 100, Page{Text: "b\n", First: 2, Lines: 1, Total: 3}},
		{"a\nb\nc\n", 4, 1, 100, Page{First: 4, Total: 3}},
		{"aaa\nbbb\nccc\n", 1, 9, 8, Page{Text: "aaa\nbbb\n", First: 1, Lines: 2, Total: 3}},
		{"aaa\nbbb\nc\n", 1, 9, 7, Page{Text: "aaa\n", First: 1, Lines: 1, Total: 3}}, // c would fit, but not after a gap
		{"aaaaaaaaaa\nb\n", 1, 9, 5, Page{Text: "aaaaa", First: 1, Lines: 1, Total: 2, Cut: true}},
		{"üüüü\n", 1, 9, 5, Page{Text: "üü", First: 1, Lines: 1, Total: 1, Cut: true}},
		{"\x1b[31mred\x1b[0m\n\x07x\n", 1, 9, 100, Page{Text: "red\nx\n", First: 1, Lines: 2, Total: 2}},
		{"\u202e\n", 1, 9, 5, Page{Text: `\u202`, First: 1, Lines: 1, Total: 1, Cut: true}},
	} {
		if got, err := ReadPage(strings.NewReader(c.text), c.first, c.lines, c.bytes); err != nil || got != c.want {
			t.Errorf("%q from %d: %+v (%v)\nwant %+v", c.text, c.first, got, err, c.want)
		}
	}
}

// TestReadPages: pages one after the other are the clean text, whatever their size.
func TestReadPages(t *testing.T) {
	t.Parallel()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	r := rand.New(rand.NewPCG(n, 2))
	for range 200 {
		text := strings.ReplaceAll(randomText(r), "\xff", "") // many lines, some with long characters
		lines, bytes := 1+r.IntN(50), 3_000+r.IntN(100_000)
		var all strings.Builder
		for first := 1; ; {
			p, err := ReadPage(strings.NewReader(text), first, lines, bytes)
			must(t, err)
			if p.Total != countLines(text) || p.Lines > lines || len(p.Text) > bytes {
				t.Fatalf("seed %d: %+v of %d lines", n, p, countLines(text))
			}
			if p.Cut {
				all.Reset()
				break
			}
			all.WriteString(p.Text)
			if !p.More() {
				break
			}
			first += p.Lines
		}
		if all.Len() > 0 && all.String() != Clean(text) {
			t.Fatalf("seed %d: pages of %d lines, %d bytes are not the text", n, lines, bytes)
		}
	}
}

// TestReadPageOfLongLine: a line that is longer than any buffer takes no more memory than its page.
func TestReadPageOfLongLine(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 1<<20) + "\nend\n"
	p, err := ReadPage(strings.NewReader(text), 1, 2_000, 256<<10)
	must(t, err)
	if p.Text != text[:256<<10] || !p.Cut || p.Total != 2 || !p.More() {
		t.Errorf("%d bytes, %+v", len(p.Text), p.More())
	}
	p, err = ReadPage(strings.NewReader(text), 2, 2_000, 256<<10)
	must(t, err)
	if p.Text != "end\n" || p.Cut || p.More() {
		t.Errorf("%+v", p)
	}
}

// TestShelfHolds: a shelf lists its texts, newest first, and opens them by the id of their call, and nothing else.
func TestShelfHolds(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "r"))
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("before anything: %v (%v)", all, err)
	}
	if _, _, err := s.Open("a"); err != ErrUnknown {
		t.Errorf("before anything: %v", err)
	}
	now := time.Now()
	for i, id := range []string{"a", "b", "c", "b"} {
		got := s.Bound(t.Context(), id, "run_shell", strings.Repeat(fmt.Sprint(i), 1_000), Form{Runes: 500})
		at := now.Add(time.Duration(i) * time.Minute)
		must(t, os.Chtimes(got.Path, at, at))
	}
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(s.Dir(), "d-x.txt")))
	must(t, os.WriteFile(filepath.Join(s.Dir(), "e.txt"), nil, 0o600))
	must(t, os.Mkdir(filepath.Join(s.Dir(), "f-x.txt"), 0o700))

	all, err := s.List()
	must(t, err)
	var ids []string
	for _, k := range all {
		ids = append(ids, k.ID)
		if k.Bytes != 1_000 || !strings.HasPrefix(k.Tool, "run_shell") || k.Time.IsZero() {
			t.Errorf("%+v", k)
		}
	}
	if fmt.Sprint(ids) != "[b c a]" {
		t.Errorf("listed are %v", ids)
	}
	f, k, err := s.Open("b")
	must(t, err)
	page, err := ReadPage(f, 1, 10, 10)
	must(t, err)
	must(t, f.Close())
	if k.ID != "b" || page.Text != "3333333333" {
		t.Errorf("%+v: %+v", k, page)
	}
	for _, id := range []string{"", "d", "e", "f", "..", "../secret", "a-run_shell", "b-run_shell-2", "a\x00"} {
		if _, _, err := s.Open(id); err != ErrUnknown {
			t.Errorf("%q: %v", id, err)
		}
	}
}
