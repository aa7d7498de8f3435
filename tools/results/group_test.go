package results

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// fortyThousand is a text of 40,000 characters, in lines of ten.
func fortyThousand() string { return strings.Repeat("123456789\n", 4_000) }

// TestGroupBudget: ten results of 40,000 characters at once stay within 200,000. Those for which there is no room are
// kept whole, name their file first, and show 2,000 bytes in whole lines.
func TestGroupBudget(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "r"))
	text := fortyThousand()
	var mu sync.Mutex
	var shown []Shown
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range 10 {
		own, answered := s.Arrive()
		wg.Go(func() {
			defer answered()
			<-begin // an answer before all have arrived ends the turn
			got := own.Bound(t.Context(), fmt.Sprint("call", i), "list_files", text, Form{Runes: 50_000})
			mu.Lock()
			defer mu.Unlock()
			shown = append(shown, got)
		})
	}
	close(begin)
	wg.Wait()
	total, whole := 0, 0
	for _, got := range shown {
		total += utf8.RuneCountInString(got.Text)
		if !got.Cut {
			whole++
			continue
		}
		kept, err := os.ReadFile(got.Path)
		must(t, err)
		if string(kept) != text {
			t.Errorf("%s holds %d bytes", got.Path, len(kept))
		}
		first := tooLarge(40_000, 4_000) + readOn(got.Path, 0) + noRoom
		if want := first + "\n" + text[:2_000] + "[... truncated 38000 chars ...]\n"; got.Text != want {
			t.Errorf("got %.300q\nwant %.300q", got.Text, want)
		}
	}
	if total > maxGroup || whole != 4 {
		t.Errorf("%d characters in all, %d results whole; want at most %d, and 4", total, whole, maxGroup)
	}
}

// TestTurns: calls that arrive before any of them is answered share the room of a turn, and no others do: 14 reads, one
// after the other, ended in previews, and with a long command beside them every call did.
func TestTurns(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "r"))
	text := fortyThousand()
	n := 0
	whole := func(own *Shelf) bool {
		n++
		return !own.Bound(t.Context(), fmt.Sprint("call", n), "t", text, Form{Runes: 50_000}).Cut
	}
	long, longAnswered := s.Arrive() // runs beside all that follow
	first, answered := s.Arrive()
	for i := range 4 {
		if !whole(first) {
			t.Errorf("result %d of the first turn was cut", i)
		}
	}
	if whole(long) {
		t.Error("a turn shows five results of 40,000 characters")
	}
	answered()
	for i := range 20 {
		own, answered := s.Arrive()
		if !whole(own) {
			t.Fatalf("call %d in a row was cut", i)
		}
		answered()
		answered() // the second time says nothing
	}
	if whole(long) {
		t.Error("an answer to others gives a call the room of another turn")
	}
	next, _ := s.Arrive()
	longAnswered() // it is of a turn that is over, so the running one goes on
	other, _ := s.Arrive()
	next.Count(maxGroup - spare)
	if whole(other) {
		t.Error("the end of an old turn ends the running one")
	}
}

// TestClaim: a claim takes what there is room for, and at least what a preview has.
func TestClaim(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	if a, b, c := s.Claim(50_000), s.Claim(500_000), s.Claim(50_000); a != 50_000 || b != 130_000 || c != previewBytes {
		t.Errorf("claimed %d, %d, %d", a, b, c)
	}
	s.Count(-150_000)
	if a := s.Claim(50_000); a != 50_000 {
		t.Errorf("claimed %d of what was given back", a)
	}
	s.Count(maxGroup)
	if a := s.Claim(50_000); a != 1 {
		t.Errorf("claimed %d of nothing", a)
	}
}

// TestGroupOfMany: whatever ten calls of one group give, short results are whole, no result is over its form, the first
// line names the file, and the sum stays below the limit.
func TestGroupOfMany(t *testing.T) {
	t.Parallel()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	r := rand.New(rand.NewPCG(n, 1))
	dir := filepath.Join(t.TempDir(), "r")
	for range 50 {
		s := New(dir)
		total := 0
		for i := range 10 { // as many as run at once
			text := strings.Repeat(strings.Repeat("ü", r.IntN(200))+"\n", 1+r.IntN(400))
			f := Form{Runes: 20_000, Bytes: limit(r) * 10, Lines: limit(r), JSON: limit(r) * 10}
			got := s.Bound(t.Context(), fmt.Sprint(n, i), "t", text, f)
			if len(text) <= previewBytes && f.allows(text) && got.Cut {
				t.Fatalf("seed %d: a text of %d bytes was cut", n, len(text))
			}
			if !f.allows(got.Text) {
				t.Fatalf("seed %d: %+v: %d bytes, %d lines", n, f, len(got.Text), countLines(got.Text))
			}
			if first, _, _ := strings.Cut(got.Text, "\n"); got.Cut && f.Bytes == 0 && f.JSON == 0 && !strings.Contains(first, got.Path) {
				t.Fatalf("seed %d: first line %q lacks %s", n, first, got.Path)
			}
			total += utf8.RuneCountInString(got.Text)
		}
		if total > maxGroup {
			t.Fatalf("seed %d: %d characters", n, total)
		}
		must(t, os.RemoveAll(dir))
	}
}

// TestGroupCount: what is added to a result later counts, too.
func TestGroupCount(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "r"))
	s.Count(150_000)
	if got := s.Bound(t.Context(), "a", "t", fortyThousand(), Form{}); !got.Cut {
		t.Error("there was no room")
	}
	s.Count(-300_000)
	if got := s.Bound(t.Context(), "b", "t", fortyThousand(), Form{}); got.Cut {
		t.Error("there was room")
	}
}

// TestFit: a text whose whole lies elsewhere is never written, and its short form names that place once.
func TestFit(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "r"))
	w := Whole{Path: "/w/a.txt", Bytes: 1e6, Lines: 9_000}
	first := "Output too large (976.6 KB, 9,000 lines). Full output: /w/a.txt Read it with read_file offset/limit or grep_search."

	if got := s.Fit("short", w, Form{}); got.Cut || got.Text != "short" {
		t.Errorf("a short text: %+v", got)
	}
	if got := s.Fit(lines0(2_000), w, Form{Runes: 3_000}); !got.Cut || !strings.HasPrefix(got.Text, first+"\nline 0\n") || utf8.RuneCountInString(got.Text) > 3_000 {
		t.Errorf("over its cap: %.300q", got.Text)
	}
	s.Count(maxGroup - spare)
	long := first + "\n" + lines0(2_000)
	got := s.Fit(long, w, Form{})
	if !got.Cut || got.Path != w.Path || !strings.HasPrefix(got.Text, first+"\nline 0\n") || strings.Count(got.Text, "Full output") != 1 {
		t.Errorf("without room: %.300q", got.Text)
	}
	got = s.Fit(lines0(2_000), Whole{Bytes: 1e6, Lines: 9_000}, Form{})
	if !strings.HasPrefix(got.Text, "Output too large (976.6 KB, 9,000 lines). It is not shown beside the other results; call the tool again on its own.\nline 0\n") {
		t.Errorf("without a place: %.300q", got.Text)
	}
	if _, err := os.Stat(s.Dir()); err == nil {
		t.Error("something was written")
	}
}

// TestGroupSaysWhy: a file of 39 KB that its turn had no room for was called too large, so it was read in pieces for ever.
// Its first line says that it is shown on its own; that of a text which is too large anyway does not.
func TestGroupSaysWhy(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "r"))
	s.Count(maxGroup - spare)
	text, w := lines0(2_000), Whole{Path: "/w/a.txt", Bytes: 1e6, Lines: 9_000}
	for name, c := range map[string]struct {
		got  Shown
		said bool
	}{
		"page":              {s.Fit(text, w, Form{}), true},
		"kept":              {s.Bound(t.Context(), "c", "t", text, Form{}), true},
		"too large":         {s.Bound(t.Context(), "d", "t", text, Form{Runes: 3_000}), false},
		"short form":        {s.Fit(tooLarge(w.Bytes, w.Lines)+readOn(w.Path, 0)+"\n"+text, w, Form{}), false},
		"without its place": {s.Fit(text, Whole{Bytes: 1e6}, Form{}), false},
	} {
		first, _, _ := strings.Cut(c.got.Text, "\n")
		if !c.got.Cut || strings.HasSuffix(first, noRoom) != c.said || strings.Count(c.got.Text, "Output too large") != 1 {
			t.Errorf("%s: %.300q", name, c.got.Text)
		}
	}
}

// TestLinkInPlaceOfShelf: a link where the directory was let results be written, and files of others be read, where it
// leads.
func TestLinkInPlaceOfShelf(t *testing.T) {
	t.Parallel()
	other, dir := t.TempDir(), filepath.Join(t.TempDir(), "r")
	if err := os.WriteFile(filepath.Join(other, "my-diary.txt"), []byte("dear diary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, dir); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	s := New(dir)
	if f, kept, err := s.Open("my"); err == nil {
		_ = f.Close()
		t.Errorf("opened %+v", kept)
	}
	if list, err := s.List(); err == nil || len(list) > 0 {
		t.Errorf("listed %v, %v", list, err)
	}
	if got := s.Bound(t.Context(), "c", "t", lines0(2_000), Form{Runes: 3_000}); got.Path != "" || !strings.Contains(got.Text, "Full output was not kept: not a directory.") {
		t.Errorf("%.300q", got.Text)
	}
	if left, err := os.ReadDir(other); err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
}

// TestReserve: what hooks may say counts before it is said, and no more is granted than the turn has room for.
func TestReserve(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	s.Count(maxGroup - 1_000)
	if a, b, c := s.Reserve(600), s.Reserve(600), s.Reserve(600); a != 600 || b != 400 || c != 0 {
		t.Errorf("granted %d, %d, %d", a, b, c)
	}
	s.Count(-300)
	if a := s.Reserve(600); a != 300 {
		t.Errorf("granted %d after 300 were given back", a)
	}
}

// TestCut: the beginning that fits, and how much is missing, within every limit.
func TestCut(t *testing.T) {
	t.Parallel()
	text := lines0(100)
	for _, f := range []Form{{}, {Runes: 200}, {Bytes: 200}, {Lines: 7}, {Runes: 60, Bytes: 50, Lines: 2}, {Runes: 10}, {Lines: 1}, {Runes: len(text)}, {Runes: len(text) - 1}} {
		got, whole := f.Cut(text)
		if !f.Fits(got) || whole != (got == text) || whole != f.Fits(text) {
			t.Errorf("%+v: %v %q", f, whole, got)
		}
		if left := utf8.RuneCountInString(text); !whole && got != "" {
			head, end, ok := strings.Cut(got, "[... truncated ")
			if left -= len(head); !ok || !strings.HasPrefix(text, head) || end != fmt.Sprint(left, " chars ...]") {
				t.Errorf("%+v: %q", f, got)
			}
		}
	}
	if got, _ := (Form{Runes: 10}).Cut(text); got != "" {
		t.Errorf("without room for the marker: %q", got)
	}
}

// TestLink: a spool gets a second name on the shelf, so that its owner may remove it.
func TestLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(filepath.Join(dir, "r"))
	spool := filepath.Join(dir, "job.log")
	must(t, os.WriteFile(spool, []byte("text"), 0o600))
	for _, want := range []string{"abc-run_shell.txt", "abc-run_shell-2.txt"} {
		path, err := s.Link("abc", "run_shell", spool)
		must(t, err)
		if path != filepath.Join(s.Dir(), want) {
			t.Errorf("kept as %s, want %s", path, want)
		}
	}
	must(t, os.Remove(spool))
	if kept, err := os.ReadFile(filepath.Join(s.Dir(), "abc-run_shell.txt")); err != nil || string(kept) != "text" {
		t.Errorf("it holds %q (%v)", kept, err)
	}
	if path, err := s.Link("abc", "run_shell", spool); err == nil {
		t.Errorf("a file that is gone was kept as %s", path)
	}
}
