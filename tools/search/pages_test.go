package search

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/disk"
	"codehand/tools/search/index"
	"codehand/tools/search/page"
)

// A metered counts the bytes that are read of a file.
type metered struct {
	io.ReaderAt
	n int64
}

func (m *metered) ReadAt(p []byte, at int64) (int, error) {
	n, err := m.ReaderAt.ReadAt(p, at)
	m.n += int64(n)
	return n, err
}

// A second page of a large file is read from nearby, and is the right one after each change of the file.
func TestPageRemembersWhereLinesBegin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	const lines = 1_500_000 // of 16 bytes
	write := func(word string, at time.Time) {
		t.Helper()
		var b strings.Builder
		for i := range lines {
			fmt.Fprintf(&b, "%s %09d\n", word, i+1)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	e := New(Options{Memory: 1 << 20})
	defer closeEngine(t, e)
	e.care.files = -time.Hour // the test's own change of times is new, too
	read := func(e *Engine, first int) (page.Page, int64) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		stamp, err := disk.Restamp(f)
		if err != nil {
			t.Fatal(err)
		}
		stamp.Racy = false
		m := &metered{ReaderAt: f}
		p, err := e.Page(t.Context(), m, stamp, page.Query{First: first, Lines: 3})
		if err != nil {
			t.Fatal(err)
		}
		return p, m.n
	}
	check := func(word string, first int, p page.Page) {
		t.Helper()
		for i, l := range p.Lines {
			if want := fmt.Sprintf("%s %09d", word, first+i); l.Text != want {
				t.Fatalf("line %d is %q, want %q", first+i, l.Text, want)
			}
		}
		if len(p.Lines) != min(3, lines-first+1) || p.More != (first+2 < lines) {
			t.Errorf("page at %d: %d lines, more %v", first, len(p.Lines), p.More)
		}
	}
	for round, word := range []string{"first", "other"} { // of one length
		write(word, time.Unix(1_600_000_000+int64(round), 0))
		const far = lines * 9 / 10
		p, n := read(e, far)
		check(word, far, p)
		if n < far*16 || p.Exact {
			t.Errorf("the first page read %d bytes, and knows the total: %v", n, p.Exact)
		}
		for _, first := range []int{far + 3, far / 2, 1, 70_000, far - 1, far + 1000} {
			p, n := read(e, first)
			check(word, first, p)
			if n > 4<<20 {
				t.Errorf("page at %d: %d bytes were read, want at most some MiB", first, n)
			}
		}
		p, _ = read(e, lines-1)
		if check(word, lines-1, p); !p.Exact || p.Total != lines {
			t.Errorf("the last page: %d lines, exact %v", p.Total, p.Exact)
		}
		if p, n = read(e, 5); !p.Exact || p.Total != lines || n > 1<<20 {
			t.Errorf("a page when the total is known: %d lines, exact %v, %d bytes", p.Total, p.Exact, n)
		}
	}
	e.Hold()()
	if _, n := read(e, lines/2); n < lines*7 {
		t.Error("marks are kept after the last session has ended")
	}
	forgetful := New(Options{})
	defer closeEngine(t, forgetful)
	for range 2 {
		if _, n := read(forgetful, lines/2); n < lines*7 {
			t.Error("an engine without a memory remembers marks")
		}
	}
	e.care.files = time.Hour // the file is too young
	for range 2 {
		if _, n := read(e, lines/3); n < lines*5 {
			t.Error("marks of a young file are kept")
		}
	}
}

// No more texts than some are remembered.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	var p pages
	first := p.of(indexStamp(0))
	for i := range int64(3 * markedTexts) {
		p.of(indexStamp(i))
		if i < markedTexts && p.of(indexStamp(0)) != first {
			t.Fatal("a text that is used all the time was forgotten")
		}
	}
	if len(p.texts) != markedTexts {
		t.Errorf("%d texts are kept, want %d", len(p.texts), markedTexts)
	}
}

func indexStamp(n int64) index.Stamp { return index.Stamp{Size: n} }
