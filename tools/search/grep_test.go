package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// slowGrep is the obvious way: every file in path order, every line with regexp, then what was asked for.
func slowGrep(t *testing.T, d dir, q GrepQuery) GrepAnswer {
	t.Helper()
	re := regexp.MustCompile(strings.ReplaceAll(q.Pattern, "$", `\r?$`))
	var out GrepAnswer
	var all []FileHits
	err := filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if f := slowFile(path, string(data), re, q); f.NLines > 0 {
			info, err := e.Info()
			if err != nil {
				return err
			}
			f.ModTime = info.ModTime()
			all = append(all, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b FileHits) int {
		if q.Newest {
			if n := b.ModTime.Compare(a.ModTime); n != 0 {
				return n
			}
		}
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	for _, f := range all {
		out.NFiles++
		out.NLines += f.NLines
	}
	out.Files = slowCutHits(all, q)
	entries := out.NFiles
	if q.Mode == Lines {
		entries = out.NLines
	}
	out.More = q.Limit > 0 && entries > q.Offset+q.Limit
	return out
}

func slowFile(path, text string, re *regexp.Regexp, q GrepQuery) FileHits {
	f := FileHits{Path: path}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		return f
	}
	hit := make([]bool, len(lines))
	for i, l := range lines {
		if hit[i] = re.MatchString(l); hit[i] {
			f.NLines++
		}
	}
	if q.Mode == FilesOnly {
		f.NLines = min(f.NLines, 1)
	}
	for i, l := range lines {
		around := false
		for j := max(0, i-q.After); j <= min(len(lines)-1, i+q.Before); j++ {
			around = around || hit[j]
		}
		if q.Mode == Lines && around {
			l = strings.TrimSuffix(l, "\r")
			f.Lines = append(f.Lines, Line{N: i + 1, Text: l, Context: !hit[i], To: len(l)})
		}
	}
	return f
}

// slowCutHits applies Offset and Limit. A match that is out is no context, and ends that of its neighbours.
func slowCutHits(all []FileHits, q GrepQuery) []FileHits {
	var out []FileHits
	n := 0
	in := func() bool { return n > q.Offset && (q.Limit == 0 || n <= q.Offset+q.Limit) }
	for _, f := range all {
		if q.Mode != Lines {
			if n++; in() {
				out = append(out, f)
			}
			continue
		}
		hits, chosen := map[int]bool{}, map[int]bool{} // numbers of lines
		for _, l := range f.Lines {
			hits[l.N] = !l.Context
		}
		for _, l := range f.Lines {
			if l.Context {
				continue
			}
			if n++; in() {
				chosen[l.N] = true
				for j := l.N - 1; j >= l.N-q.Before && !hits[j]; j-- {
					chosen[j] = true
				}
				for j := l.N + 1; j <= l.N+q.After && !hits[j]; j++ {
					chosen[j] = true
				}
			}
		}
		lines := f.Lines
		f.Lines = nil
		for _, l := range lines {
			if chosen[l.N] {
				f.Lines = append(f.Lines, l)
			}
		}
		if len(f.Lines) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// randomFiles makes a tree of small files full of few words, some of them longer than a chunk.
func randomFiles(r *rand.Rand) map[string]string {
	files := map[string]string{}
	names := []string{"a", "b", "a-b", "a.b", "c", "é", ".h", "x y"}
	words := []string{"foo", "bar", "foobar", "x", "", "é", "baz foo", "k", strings.Repeat("-", 90)}
	for range 40 {
		var parts []string
		for range 1 + r.IntN(3) {
			parts = append(parts, names[r.IntN(len(names))])
		}
		var b strings.Builder
		lines := r.IntN(12)
		if r.IntN(20) == 0 {
			lines = 20000
		}
		for range lines {
			b.WriteString(words[r.IntN(len(words))])
			b.WriteString([]string{"\n", "\n", " ", "\r\n"}[r.IntN(4)])
		}
		files[strings.Join(parts, "/")+".txt"] = b.String()
	}
	return files
}

// The answer is the slow one's for every number of workers, whatever is asked for.
func TestGrepEqualsSlowGrep(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			files := randomFiles(r)
			d := newDir(t, files)
			for name := range files {
				at := time.Unix(1_600_000_000+int64(r.IntN(5)), int64(r.IntN(2)))
				if err := os.Chtimes(filepath.Join(d.path, name), at, at); err != nil {
					t.Fatal(err)
				}
			}
			for range 30 {
				q := GrepQuery{
					Pattern: []string{"foo", "ba[rz]", "^$", "foo|k", "x.*x", "é", "nothing", "^foo"}[r.IntN(8)],
					Mode:    Mode(r.IntN(3)), Newest: r.IntN(2) == 0, Before: r.IntN(3), After: r.IntN(3), MaxLine: 1 << 30, MaxText: 1 << 30,
					Offset: r.IntN(4) * r.IntN(20), Limit: r.IntN(3) * r.IntN(30), CountFor: time.Hour,
				}
				if q.Mode != Lines {
					q.Before, q.After = 0, 0
				}
				want := slowGrep(t, d, q)
				got := d.grepWith(t, Options{Workers: []int{1, 2, 8}[r.IntN(3)]}, q)
				if !got.Exact || !got.Coverage.Complete {
					t.Fatalf("%+v: exact %v, complete %v; want both", q, got.Exact, got.Coverage.Complete)
				}
				left, total := 0, got.NFiles
				if q.Mode == Lines {
					total = got.NLines
				}
				for _, r := range got.Rest {
					left += r.N
				}
				if want := max(0, total-q.Offset-q.Limit); len(got.Rest) < maxGroup && q.Limit > 0 && left != want {
					t.Fatalf("%+v: %d left out by directory, want %d: %v", q, left, want, got.Rest)
				}
				got.Exact, got.Coverage, got.Rest = false, Coverage{}, nil
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%+v: %s", q, difference(got, want))
				}
			}
		})
	}
}

// difference names the first thing that is not equal.
func difference(got, want GrepAnswer) string {
	if len(got.Files) != len(want.Files) || got.NFiles != want.NFiles || got.NLines != want.NLines || got.More != want.More {
		return fmt.Sprintf("got %s\nwant %s", show(got), show(want))
	}
	for i, f := range got.Files {
		w := want.Files[i]
		for j := range max(len(f.Lines), len(w.Lines)) {
			if j >= len(f.Lines) || j >= len(w.Lines) || !reflect.DeepEqual(f.Lines[j], w.Lines[j]) {
				return fmt.Sprintf("%s line %d of %d, %d:\n got %+v\nwant %+v", f.Path, j, len(f.Lines), len(w.Lines), f.Lines[j:min(j+1, len(f.Lines))], w.Lines[j:min(j+1, len(w.Lines))])
			}
		}
		f.Lines, w.Lines = nil, nil
		if !reflect.DeepEqual(f, w) {
			return fmt.Sprintf("got %+v\nwant %+v", f, w)
		}
	}
	return "nil and empty"
}

func show(a GrepAnswer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d files, %d lines, more %v:", a.NFiles, a.NLines, a.More)
	for _, f := range a.Files {
		fmt.Fprintf(&b, "\n  %s (%d, %v)", f.Path, f.NLines, f.ModTime)
		for i, l := range f.Lines {
			if i < 40 {
				fmt.Fprintf(&b, " %d:%s(%v)", l.N, shorten(l.Text), l.Context)
			}
		}
	}
	return b.String()
}

func TestGrepErrors(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": "x\n"})
	e := New(Options{})
	defer closeEngine(t, e)
	grep := func(ctx context.Context, q GrepQuery) error {
		if q.Place.Dir == nil {
			q.Place = d.at("")
		}
		_, err := e.Grep(ctx, q)
		return err
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := grep(done, GrepQuery{Pattern: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want context.Canceled", err)
	}
	if err := grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at("gone/x")}}); !errors.Is(err, ErrGone) {
		t.Errorf("missing place: got %v, want ErrGone", err)
	}
	if err := grep(t.Context(), GrepQuery{Pattern: "("}); !is[*PatternError](err) {
		t.Errorf("bad pattern: got %v, want a PatternError", err)
	}
	if err := grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Globs: []string{"[a"}}}); !is[*PatternError](err) {
		t.Errorf("bad glob: got %v, want a PatternError", err)
	}
	err := grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Types: []string{"golang"}}})
	if kind, ok := errors.AsType[*TypeError](err); !ok || !slices.Contains(kind.Near, "go") {
		t.Errorf("unknown type: got %v, want a TypeError that names go", err)
	}
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func TestGrepAfterClose(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": "x\n"})
	e := New(Options{})
	closeEngine(t, e)
	if _, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at("")}}); err == nil {
		t.Error("a closed engine gave an answer, want an error")
	}
}

// A panic of a callback in a worker is the query's error, not the end of the process.
func TestGrepPanic(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": "x\n", "b/c": "x\n"})
	e := New(Options{})
	defer closeEngine(t, e)
	_, err := e.Grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at(""), Skip: func(string) bool { panic("boom") }}})
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v, want an error that names the panic", err)
	}
	_, err = e.Grep(t.Context(), GrepQuery{Pattern: "x", Scope: Scope{Place: d.at("a"), Skip: func(string) bool { panic("boom") }}})
	if err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("of a named file: got %v, want an error that names the panic", err)
	}
}

// What is over MaxText is only counted, and the answer says so. What is kept is the beginning in order.
func TestGrepMaxText(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("%02d", i)] = strings.Repeat("0123456789\n", 10)
	}
	d := newDir(t, files)
	for _, workers := range []int{1, 4} {
		a := d.grepWith(t, Options{Workers: workers}, GrepQuery{Pattern: "5", Mode: Lines, MaxText: 25*minLineCost + 7})
		if a.NLines != 300 || a.NFiles != 30 || !a.More || a.Coverage.Complete || a.Coverage.Why != Memory {
			t.Errorf("got %d lines in %d files, more %v, why %q; want 300 in 30, more, %q", a.NLines, a.NFiles, a.More, a.Coverage.Why, Memory)
		}
		if got := d.names(a.Files); !slices.Equal(got, []string{"00", "01", "02"}) || len(a.Files[2].Lines) != 5 {
			t.Errorf("kept %v, want 25 lines of the first three files", got)
		}
	}
}

func TestGrepLongLines(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 400)
	é := strings.Repeat("é", 400)
	d := newDir(t, map[string]string{"a": x + "match" + x + "\n" + é + "match" + é + "\n" + "match" + x + x + "\n" + x + x + "match\n" + "short match\n"})
	a := d.grep(t, GrepQuery{Pattern: "match", Mode: Lines, MaxLine: 100, Spans: true})
	lines := a.Files[0].Lines
	for i, want := range []struct {
		from, to int
		cut      bool
	}{{375, 475, true}, {750, 945, true}, {0, 100, true}, {705, 805, true}, {0, 11, false}} {
		l := lines[i]
		if l.From != want.from || l.To != want.to || l.Cut != want.cut {
			t.Errorf("line %d: %d:%d cut %v, want %+v", l.N, l.From, l.To, l.Cut, want)
		}
		if n := len([]rune(l.Text)); l.Cut && n != 100 {
			t.Errorf("line %d: %d runes, want 100", l.N, n)
		}
		if len(l.Spans) != 1 || l.Text[l.Spans[0].From:l.Spans[0].To] != "match" {
			t.Errorf("line %d: spans %v in %q, want the match", l.N, l.Spans, l.Text)
		}
	}
}

// Lines that are longer than a buffer are one line all the same.
func TestGrepHugeLines(t *testing.T) {
	t.Parallel()
	for _, size := range []int{chunkSize - 3, chunkSize, chunkSize + maxBefore, 3 << 20} {
		d := newDir(t, map[string]string{"a": "before\n" + strings.Repeat("y", size) + "needle\nafter\n"})
		a := d.grep(t, GrepQuery{Pattern: "needle|after", Mode: Lines, Before: 1, After: 1})
		if a.NLines != 2 || a.Files[0].Lines[1].N != 2 || !strings.HasSuffix(a.Files[0].Lines[1].Text, "needle") || a.Files[0].Lines[2].N != 3 || !a.Coverage.Complete {
			t.Errorf("size %d: got %s", size, show(a))
		}
	}
}

// Of a line over the bound its beginning is searched, the file goes on behind it, and the answer says that it is not complete.
func TestGrepLineOverBound(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": "head" + strings.Repeat("y", maxLineBytes) + "tail\nhead tail\n"})
	a := d.grep(t, GrepQuery{Pattern: "head", Mode: Lines, MaxLine: 10})
	if a.NLines != 2 || a.Files[0].Lines[1].N != 2 {
		t.Errorf("got %s, want lines 1 and 2", show(a))
	}
	if a.Coverage.Complete || a.Coverage.Why != TooLarge || !slices.Equal(a.Coverage.LongLines.Paths, []string{d.path + "/a"}) {
		t.Errorf("coverage %+v, want incomplete for a long line", a.Coverage)
	}
	if a := d.grep(t, GrepQuery{Pattern: "tail", Mode: Lines}); a.NLines != 1 || a.Files[0].Lines[0].N != 2 {
		t.Errorf("got %s, want line 2 only", show(a))
	}
}
