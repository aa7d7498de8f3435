package search

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

func TestFilesEqualsDoublestar(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 5))
	names := []string{"a", "b.go", "c.go", "[id]", "(app)", "{x}", ".hidden", "é.go", "node_modules", "src", ".go", "a b"}
	files := map[string]string{}
	for range 150 {
		var parts []string
		for range r.IntN(3) {
			parts = append(parts, "d"+names[r.IntN(len(names))])
		}
		files[strings.Join(append(parts, names[r.IntN(len(names))]), "/")] = ""
	}
	d := newDir(t, files)
	for name := range files {
		at := time.Unix(1_600_000_000+int64(r.IntN(4)), 0)
		if err := os.Chtimes(filepath.Join(d.path, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{
		"*", "**", "**/*", "**/*.go", "*.go", "**/b.go", "dsrc/**", "dsrc/*.go", "d*/**/*.go", "dsrc/d[[]id]/*", `d\[id\]/**`, "**/{b,c}.go", "{dsrc,da}/{a,*.go}", "**/d?/*",
		"d(app)/**", "**/[a-c].go", "**/[!b].go", "nothing/**", "**/é*", "*/*/*", "dsrc/dsrc/dsrc/*", "{a,{b,c}.go,dsrc/a}", "./*.go", "**/.*", "*{", "**/a b",
	} {
		if !doublestar.ValidatePattern(p) {
			continue
		}
		var want []FileInfo
		err := filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if doublestar.MatchUnvalidated(strings.TrimPrefix(p, "./"), d.rel(path)) {
				want = append(want, FileInfo{path, info.ModTime(), info.Size()})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(want, func(a, b FileInfo) int {
			if n := b.ModTime.Compare(a.ModTime); n != 0 {
				return n
			}
			return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
		})
		for _, limit := range []int{0, 1, 7} {
			for _, offset := range []int{0, 3} {
				got := d.files(t, FileQuery{Pattern: p, Offset: offset, Limit: limit})
				cut := want[min(offset, len(want)):]
				if limit > 0 {
					cut = cut[:min(limit, len(cut))]
				}
				if got.N != len(want) || !slices.Equal(got.Files, cut) || !got.Coverage.Complete {
					t.Errorf("%q from %d, %d: got %d: %v; want %d: %v", p, offset, limit, got.N, got.Files, len(want), cut)
				}
			}
		}
	}
}

func TestFilesErrors(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a": ""})
	e := New(Options{})
	defer closeEngine(t, e)
	for _, c := range []struct {
		pattern, name string
		offset        int
	}{{"[a", "", 0}, {"ab{c", "", 2}, {"", "", 0}, {"../*", "", 0}, {"a/../../b", "", 0}} {
		_, err := e.Files(t.Context(), FileQuery{Pattern: c.pattern, Scope: Scope{Place: d.at("")}})
		if bad, ok := errors.AsType[*PatternError](err); !ok || bad.Offset != c.offset {
			t.Errorf("%q: got %#v, want a PatternError at %d", c.pattern, err, c.offset)
		}
	}
	if _, err := e.Files(t.Context(), FileQuery{Pattern: "*", Scope: Scope{Place: d.at("a")}}); !errors.Is(err, ErrNotDirectory) {
		t.Errorf("a file as place: got %v, want ErrNotDirectory", err)
	}
}

func TestFilesSkipDirs(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"node_modules/a/x.js": "", "src/node_modules/x.js": "", "src/x.js": "", ".git/x.js": ""})
	for _, c := range []struct {
		pattern string
		want    []string
	}{
		{"**/*.js", []string{"src/x.js"}},
		{"node_modules/**", []string{"node_modules/a/x.js"}},
		{"**/node_modules/*.js", []string{"src/node_modules/x.js"}},
		{".git/*", nil},
	} {
		a := d.files(t, FileQuery{Pattern: c.pattern, Scope: Scope{SkipDirs: []string{"node_modules"}}})
		var got []string
		for _, f := range a.Files {
			got = append(got, d.rel(f.Path))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.pattern, got, c.want)
		}
	}
}

// More names than one batch holds, in one directory.
func TestFilesManyInOneDirectory(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{".ignore": "*7\n"})
	n := nameBatch + 1500
	for i := range n {
		d.write(t, fmt.Sprintf("f%d", i), "")
	}
	a := d.files(t, FileQuery{Pattern: "f*", Limit: 3})
	want := 0
	for i := range n {
		if i%10 != 7 {
			want++
		}
	}
	if a.N != want || len(a.Files) != 3 {
		t.Errorf("got %d names, %d shown; want %d, 3", a.N, len(a.Files), want)
	}
}
