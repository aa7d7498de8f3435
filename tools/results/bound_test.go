package results

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lines0(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestBoundShortText(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "results")
	s := New(dir)
	for _, f := range []Form{{}, {Runes: 5}, {Bytes: 6}, {Lines: 2}, {5, 6, 2, 7}} {
		if got := s.Bound(t.Context(), "call", "tool", "ü\nabc", f); got.Text != "ü\nabc" || got.Cut || got.Path != "" || got.Bytes != 6 || got.Lines != 2 {
			t.Errorf("%+v: %+v", f, got)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory was made for nothing")
	}
}

func TestBoundLongText(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "results"))
	text := lines0(20_000)
	got := s.Bound(t.Context(), "k3x9q2mh5t7a2b4c", "run_shell", text, Form{Runes: 20_000})
	path := filepath.Join(s.Dir(), "k3x9q2mh5t7a2b4c-run_shell.txt")
	if got.Path != path || !got.Cut || got.Bytes != int64(len(text)) || got.Lines != 20_000 {
		t.Errorf("%+v", Shown{Path: got.Path, Bytes: got.Bytes, Lines: got.Lines, Cut: got.Cut})
	}
	kept, err := os.ReadFile(path)
	must(t, err)
	if string(kept) != text {
		t.Error("the file does not hold the whole")
	}
	parts := strings.Split(got.Text, "\n")
	want := "Output too large (" + Size(int64(len(text))) + ", 20,000 lines). Full output: " + path +
		" Read it with read_file offset/limit or grep_search."
	if parts[0] != want {
		t.Errorf("first line %q, want %q", parts[0], want)
	}
	if parts[1] != "line 0" || !strings.HasSuffix(got.Text, "\nline 19999\n") {
		t.Errorf("head begins with %q, tail ends with %q", parts[1], parts[len(parts)-2])
	}
	checkMarker(t, text, got.Text, want)
	for path, mode := range map[string]os.FileMode{s.Dir(): 0o700 | os.ModeDir, path: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// checkMarker takes a short form apart: the whole is head, as many characters as the marker says, and tail.
func checkMarker(t *testing.T, text, short, first string) {
	t.Helper()
	body, ok := strings.CutPrefix(short, first+"\n")
	if !ok {
		t.Fatalf("begins with %.80q", short)
	}
	const before, after = "\n[... truncated ", " chars ...]\n"
	head, rest, ok := strings.Cut(body, before)
	number, tail, ok2 := strings.Cut(rest, after)
	n, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil {
		t.Fatalf("no marker in %.200q", body)
	}
	missing := strings.TrimSuffix(strings.TrimPrefix(text, head), tail)
	if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || len(missing) != len(text)-len(head)-len(tail) {
		t.Fatalf("head %.40q or tail %.40q is not of the text", head, tail)
	}
	// A line end between head and marker may be the text's own or the marker's.
	if got := utf8.RuneCountInString(missing); got != n && got != n+1 {
		t.Errorf("the marker says %d, %d are missing", n, got)
	}
}

// Of 50,000 characters head and tail take all that the first line and the marker leave, each the same: 24,970 at most.
func TestBoundKeepsEach(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("é", 200_000) // no line end is near
	got := New(filepath.Join(t.TempDir(), "results")).Bound(t.Context(), "k3x9q2mh5t7a2b4c", "run_shell", text, Form{Runes: 50_000})
	lines := strings.Split(got.Text, "\n")
	if n := utf8.RuneCountInString(got.Text); len(lines) != 4 || n < 49_990 || n > 50_000 {
		t.Fatalf("%d lines, %d characters", len(lines), n)
	}
	first, head, tail := utf8.RuneCountInString(lines[0]), utf8.RuneCountInString(lines[1]), utf8.RuneCountInString(lines[3])
	if head != tail || head > 24_970 || head < 24_970-first/2 {
		t.Errorf("head %d, tail %d, behind a line of %d", head, tail, first)
	}
}

// keep is half of the cap less what the first line takes, and moves to a line end if one is near.
func TestBoundCutsAtLineEnds(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	for name, c := range map[string]struct {
		text    string
		atLines bool
	}{
		"short lines": {lines0(10_000), true},
		"one line":    {strings.Repeat("x", 100_000), false},
		"long lines":  {strings.Repeat(strings.Repeat("x", 9_000)+"\n", 20), false},
	} {
		got := s.Bound(t.Context(), "call", "tool", c.text, Form{Runes: 5_000}).Text
		n := utf8.RuneCountInString(got)
		if n > 5_000 || n < 4_000 {
			t.Errorf("%s: %d characters", name, n)
		}
		_, body, _ := strings.Cut(got, "\n")
		head, rest, _ := strings.Cut(body, "\n[...")
		_, tail, _ := strings.Cut(rest, "]\n")
		whole := strings.Contains(c.text, "\n"+tail) && strings.Contains(c.text, head+"\n")
		if whole != c.atLines {
			t.Errorf("%s: head ends %.30q, tail begins %.30q", name, head[len(head)-30:], tail)
		}
	}
}

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

// Whatever the text and the form: the result is never over it, and the file is the text, byte for byte.
func TestBoundProperties(t *testing.T) {
	t.Parallel()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	r := rand.New(rand.NewPCG(n, 0))
	dir := filepath.Join(t.TempDir(), "r")
	for i := range 2_000 {
		s := New(dir) // each has its group for itself
		text := randomText(r)
		f := Form{Runes: limit(r), Bytes: limit(r), Lines: limit(r) / 50, JSON: limit(r)}
		got := s.Bound(t.Context(), fmt.Sprint("call", i), "tool", text, f)
		if !f.allows(got.Text) {
			t.Fatalf("seed %d: %+v: %d bytes, %d runes, %d lines", n, f, len(got.Text), utf8.RuneCountInString(got.Text), countLines(got.Text))
		}
		if got.Cut == f.allows(text) {
			t.Fatalf("seed %d: %+v: cut %t", n, f, got.Cut)
		}
		if got.Bytes != int64(len(text)) || utf8.ValidString(text) && !utf8.ValidString(got.Text) {
			t.Fatalf("seed %d: %+v: %d bytes of %d", n, f, got.Bytes, len(text))
		}
		if !got.Cut {
			continue
		}
		kept, err := os.ReadFile(got.Path)
		must(t, err)
		if string(kept) != text {
			t.Fatalf("seed %d: the file has %d bytes, the text %d", n, len(kept), len(text))
		}
		must(t, os.Remove(got.Path))
		if first, _, ok := strings.Cut(got.Text, "\n"); ok && strings.Contains(got.Text, "[... truncated") {
			checkMarker(t, text, got.Text, first)
		}
	}
}

// allows is the slow and obviously right form of fits.
func (f Form) allows(text string) bool {
	runes := len([]rune(text))
	lines := len(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
	if text == "" {
		lines = 0
	}
	return (f.Runes == 0 || runes <= f.Runes) && (f.Bytes == 0 || len(text) <= f.Bytes) && (f.Lines == 0 || lines <= f.Lines) &&
		(f.JSON == 0 || lengthInJSON(text) <= f.JSON)
}

// lengthInJSON is what JSON.stringify(text).length is in JavaScript, without the quotes.
func lengthInJSON(text string) int {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(string([]rune(text))); err != nil {
		panic(err)
	}
	return len(utf16.Encode([]rune(b.String()))) - len("\"\"\n")
}

func limit(r *rand.Rand) int {
	if r.IntN(2) == 0 {
		return 0
	}
	return 1 + r.IntN(3_000)
}

func randomText(r *rand.Rand) string {
	alphabet := []string{"a", "\n", "ü", "✓", "😀", "word ", "\xff", "\\\"\t\x01"}[:2+r.IntN(7)]
	var b strings.Builder
	for range r.IntN(6_000) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

func TestBoundThatCannotKeep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	text := lines0(1_000)
	got := New(filepath.Join(file, "results")).Bound(t.Context(), "call", "tool", text, Form{Runes: 1_000})
	first, _, _ := strings.Cut(got.Text, "\n")
	if want := "Output too large (" + Size(int64(len(text))) + ", 1,000 lines). Full output was not kept: not a directory."; first != want {
		t.Errorf("first line %q, want %q", first, want)
	}
	if got.Path != "" || !got.Cut {
		t.Errorf("path %q, cut %t", got.Path, got.Cut)
	}
	checkMarker(t, text, got.Text, first)
}

// Nothing is ever overwritten, and no link is followed.
func TestBoundNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := New(dir)
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("mine"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "call-tool.txt")))
	text, f := strings.Repeat("x", 1_000), Form{Runes: 500}
	seen := map[string]bool{}
	for range 3 {
		path := s.Bound(t.Context(), "call", "tool", text, f).Path
		if path == "" || seen[path] {
			t.Errorf("path %q was used before", path)
		}
		seen[path] = true
	}
	if was, _ := os.ReadFile(outside); string(was) != "mine" {
		t.Error("a link was followed")
	}
	for _, name := range []string{"../../etc/x", "a/b", "..", "", "mcp__x.y__z", strings.Repeat("n", 500), "ü\x00"} {
		path := s.Bound(t.Context(), name, name, text, f).Path
		if filepath.Dir(path) != dir || len(filepath.Base(path)) > 220 {
			t.Errorf("%.20q is kept as %s", name, path)
		}
	}
}

// A session whose calls all have the same id and tool runs out of names, not out of answers.
func TestBoundWithoutNames(t *testing.T) {
	t.Parallel()
	s := New(t.TempDir())
	text := strings.Repeat("x", 1_000)
	for range attempts {
		if s.Bound(t.Context(), "c", "t", text, Form{Runes: 500}).Path == "" {
			t.Fatal("not kept")
		}
	}
	if got := s.Bound(t.Context(), "c", "t", text, Form{Runes: 500}); got.Path != "" || !strings.Contains(got.Text, "not kept: file exists.") {
		t.Errorf("%.100q", got.Text)
	}
}

func TestBoundFromMany(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "a", "b"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if got := s.Bound(t.Context(), fmt.Sprint(i), "t", strings.Repeat("x", 1_000), Form{Runes: 500}); got.Path == "" {
				t.Error(got.Text)
			}
		})
	}
	wg.Wait()
}

func TestBoundFile(t *testing.T) {
	t.Parallel()
	s := New(filepath.Join(t.TempDir(), "results"))
	const path = "/state/jobs/job_x.log"
	first := func(size int64, lines int) string {
		return "Output too large (" + Size(size) + ", " + Count(lines) + " lines). Full output: " + path +
			" Read it with read_file offset/limit or grep_search."
	}
	whole := lines0(1_000)

	if got := s.BoundFile(Spool{Path: path, Bytes: 5, Lines: 1}, "hello", "", Form{Runes: 100}); got.Text != "hello" || got.Cut || got.Path != "" || got.Lines != 1 {
		t.Errorf("a short whole: %+v", got)
	}
	got := s.BoundFile(Spool{Path: path, Bytes: int64(len(whole)), Lines: 1_000}, whole, "", Form{Runes: 1_000})
	checkMarker(t, whole, got.Text, first(int64(len(whole)), 1_000))
	if got.Path != path || len(got.Text) > 1_000 {
		t.Errorf("a long whole: %d characters, path %q", len(got.Text), got.Path)
	}
	got = s.BoundFile(Spool{Path: path, Bytes: 1e9, Lines: 5_000_000}, "head\n", "tail\n", Form{Runes: 1_000})
	if want := first(1e9, 5_000_000) + "\nhead\n[... truncated 999999990 chars ...]\ntail\n"; got.Text != want {
		t.Errorf("ends that fit:\n%s\nwant\n%s", got.Text, want)
	}
	got = s.BoundFile(Spool{Path: path, Bytes: 1e9, Lines: 5_000_000}, whole, whole, Form{Runes: 1_000, Lines: 20})
	if !(Form{Runes: 1_000, Lines: 20}).allows(got.Text) || !strings.HasSuffix(got.Text, "line 999\n") {
		t.Errorf("ends that do not fit: %d characters, %d lines", len(got.Text), countLines(got.Text))
	}
	if _, err := os.Stat(s.Dir()); err == nil {
		t.Error("something was written")
	}
}
