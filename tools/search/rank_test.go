package search

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"codehand/filestate/leaktest"
)

// rows are the lines of an answer as path:number.
func rows(d dir, a GrepAnswer) []string {
	var out []string
	for _, f := range a.Files {
		for _, l := range f.Lines {
			if !l.Context {
				out = append(out, fmt.Sprintf("%s:%d", d.rel(f.Path), l.N))
			}
		}
	}
	return out
}

func TestRankOrder(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{
		"a.go": "x := Load()\nfunc Load() {}\n", "b.go": "func (b *B) Load() {}\n// Load\n", "c.py": "def Load(): pass\nLoad()\n",
		"d.txt": "Load\n", "e.go": "func other(x Load) {}\n",
	})
	for i, name := range []string{"a.go", "b.go", "c.py", "d.txt", "e.go"} {
		at := time.Unix(1_600_000_000+int64(i), 0)
		if err := os.Chtimes(filepath.Join(d.path, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	first := func(path string) bool { return d.rel(path) == "b.go" }
	for _, c := range []struct {
		what string
		q    GrepQuery
		want string
	}{
		{"all fits: by path", GrepQuery{Limit: 8}, "a.go:1 a.go:2 b.go:1 b.go:2 c.py:1 c.py:2 d.txt:1 e.go:1"},
		{"no limit: by path", GrepQuery{}, "a.go:1 a.go:2 b.go:1 b.go:2 c.py:1 c.py:2 d.txt:1 e.go:1"},
		{"definitions, what changed here, the newest", GrepQuery{Limit: 7}, "b.go:1 c.py:1 a.go:2 b.go:2 e.go:1 d.txt:1 c.py:2"},
		{"the next page", GrepQuery{Limit: 7, Offset: 7}, "a.go:1"},
		{"a page of another size", GrepQuery{Limit: 100, Offset: 6}, "c.py:2 a.go:1"},
		{"the rest without a limit", GrepQuery{Offset: 2}, "a.go:2 b.go:2 e.go:1 d.txt:1 c.py:2 a.go:1"},
		{"context keeps files whole", GrepQuery{Limit: 7, After: 1}, "b.go:1 b.go:2 c.py:1 c.py:2 a.go:1 a.go:2 e.go:1"},
		{"too many lines", GrepQuery{Limit: 3, Rank: &Rank{Lines: 7}}, "a.go:1 a.go:2 b.go:1"},
		{"too many files", GrepQuery{Limit: 3, Rank: &Rank{Files: 4}}, "a.go:1 a.go:2 b.go:1"},
		{"just few enough", GrepQuery{Limit: 3, Rank: &Rank{Files: 5, Lines: 8}}, "c.py:1 b.go:1 a.go:2"},
		{"too much text", GrepQuery{Limit: 3, MaxText: 7 * minLineCost}, "a.go:1 a.go:2 b.go:1"},
		{"a file has its own order", GrepQuery{Limit: 1, Scope: Scope{Place: d.at("a.go")}}, "a.go:1"},
	} {
		for _, workers := range []int{1, 3} {
			q := c.q
			q.Pattern, q.Mode = "Load", Lines
			if q.Rank == nil {
				q.Rank = &Rank{First: first}
			}
			a := d.grepWith(t, Options{Workers: workers}, q)
			if got := strings.Join(rows(d, a), " "); got != c.want {
				t.Errorf("%s, %d workers:\n got %s\nwant %s", c.what, workers, got, c.want)
			}
			if q.Place.Dir == nil && a.NLines != 8 || !a.Coverage.Complete || a.More != (q.Limit > 0 && q.Limit+q.Offset < a.NLines) {
				t.Errorf("%s: %d lines, complete %v, more %v", c.what, a.NLines, a.Coverage.Complete, a.More)
			}
		}
	}
}

// Pages of any size put together are all lines, each once, in one order, for every number of workers and with a memory;
// what is counted as still to come is what comes.
func TestRankedPagesAreWhole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	files := randomFiles(r)
	for name, text := range files {
		delete(files, name)
		files[strings.TrimSuffix(name, ".txt")+[]string{".go", ".py", ".txt"}[r.IntN(3)]] = strings.ReplaceAll(text, "baz ", "func ")
	}
	d := newDir(t, files)
	for name := range files {
		at := time.Unix(1_600_000_000+int64(r.IntN(5)), 0)
		if err := os.Chtimes(filepath.Join(d.path, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	all := d.grep(t, GrepQuery{Pattern: "foo", Mode: Lines, Limit: 1 << 20})
	if all.NLines < 2000 {
		t.Fatalf("only %d lines", all.NLines)
	}
	for _, rank := range []*Rank{{Lines: 1 << 20, For: time.Hour}, {Lines: all.NLines / 2, For: time.Hour}, nil} {
		var whole []string
		for _, size := range []int{997, 5000, 1 << 19} {
			for _, o := range leaktest.Some(2, []Options{{Workers: 1}, {Workers: 4}, {Workers: 2, Memory: 64 << 20}}) {
				var got []string
				e := New(o)
				for offset, more := 0, true; more; offset += size {
					a, err := e.Grep(t.Context(), GrepQuery{Scope: Scope{Place: d.at("")}, Pattern: "foo", Mode: Lines, Rank: rank, Limit: size, Offset: offset})
					if err != nil {
						t.Fatal(err)
					}
					rest := 0
					for _, in := range a.Rest {
						rest += in.N
					}
					if got = append(got, rows(d, a)...); len(a.Rest) < maxGroup && rest != all.NLines-len(got) {
						t.Fatalf("size %d: %d to come by directory, want %d", size, rest, all.NLines-len(got))
					}
					more = a.More
				}
				closeEngine(t, e)
				switch {
				case size == 1<<19: // one page: by path
					got = slices.Clone(got)
					slices.Sort(got)
					want := slices.Sorted(slices.Values(whole))
					if !slices.Equal(got, want) {
						t.Errorf("pages have %d lines, one answer %d", len(want), len(got))
					}
				case whole == nil:
					whole = got
				case !slices.Equal(got, whole):
					t.Errorf("rank %+v, size %d, %+v: another order", rank, size, o)
				}
			}
		}
	}
}

// On a slow disk the order is by path.
func TestRankEndsInTime(t *testing.T) {
	t.Parallel()
	c := &collector{dirs: tally{}, byLine: true, need: 1, maxText: 1 << 20, halt: newHalt()}
	synctest.Test(t, func(t *testing.T) {
		stop := c.rank(GrepQuery{Mode: Lines, Limit: 1, Rank: &Rank{}})
		defer stop()
		for _, name := range []string{"b.go", "a.go"} {
			e := &entry{rel: name}
			c.open(e)
			c.give(e, 1, []Line{{N: 1, Defines: name == "b.go"}})
		}
		if len(c.kept) != 2 {
			t.Fatalf("%d files are kept, want both while they may be ranked", len(c.kept))
		}
		time.Sleep(rankedFor)
		synctest.Wait()
		if a := c.answer(0, 1, true); a.Ranked || len(a.Files) != 1 || len(c.kept) != 1 {
			t.Errorf("ranked %v, %d files, %d kept, want one, by path", a.Ranked, len(a.Files), len(c.kept))
		}
	})
}

// What ignore files leave out, and only that, can be searched; so can the first files alone.
func TestLeftOutAndMaxWork(t *testing.T) {
	t.Parallel()
	d := newDir(t, ofNames("a", "build/a", "build/deep/b", "c.o", "src/d.o", "src/e", "src/.svn/x"))
	d.write(t, ".gitignore", "build\n*.o\n")
	if got, want := searched(t, d, Scope{LeftOut: true}), []string{"build/a", "build/deep/b", "c.o", "src/d.o"}; !slices.Equal(got, want) {
		t.Errorf("left out: %v, want %v", got, want)
	}
	for work, want := range map[int]int{1: 0, 2: 1, 3: 2, 5: 3, 50: 4} {
		a := d.grepWith(t, Options{Workers: 4}, GrepQuery{Pattern: "x", Mode: Count, MaxWork: work, Scope: Scope{Globs: []string{"!.gitignore"}, Ignored: true, Place: d.at("")}})
		if whole := work == 50; a.Exact != whole || a.Coverage.Complete != whole || !whole && a.Work != work {
			t.Errorf("%d: %d files, exact %v, %v, work %d", work, a.NFiles, a.Exact, a.Coverage.Why, a.Work)
		}
		if work < 5 && a.NFiles != want {
			t.Errorf("%d: %d files, want %d", work, a.NFiles, want)
		}
	}
}
