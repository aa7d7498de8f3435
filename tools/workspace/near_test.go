package workspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestNear(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"ws/src/main.go", "ws/src/main.ts", "ws/src/util.go", "ws/src/a", "ws/src/README", "ws/.bashrc", "ws/src/日本語.go", "other/only/there.md"} {
		f.write(t, name, "")
	}
	f.link(t, "ws/src/mine.go", "TOP/outside/x.txt") // likely by name, and outside
	for path, want := range map[string][]string{
		"src/main.js":               {"ws/src/main.go", "ws/src/main.ts"},
		"src/mian.go":               {"ws/src/main.go"},
		"src/Main.go":               {"ws/src/main.go"},
		"src/utill.go":              {"ws/src/util.go"},
		"src/readme":                {"ws/src/README"},
		"src/日本誤.go":                {"ws/src/日本語.go"},
		"src/b":                     nil, // one letter says nothing
		"src/nothing.like.it":       nil,
		".bashr":                    {"ws/.bashrc"},
		"src/src/util.go":           {"ws/src/util.go"},
		f.path("wrong/src/util.go"): {"ws/src/util.go"},
		"src/ws/dir/b.txt":          {"ws/dir/b.txt"},
		"only/there.md":             {"other/only/there.md"},
		"other/only/there.md":       {"other/only/there.md"},
		".":                         nil,
		"main.go/x":                 nil,
		"/etc/passwdx":              nil,
		"":                          nil,
		`\\host\x`:                  nil,
		"out/../../outside/y.txt":   nil,
	} {
		var abs []string
		for _, w := range want {
			abs = append(abs, f.path(w))
		}
		if got := f.Near(path, nil); !slices.Equal(got, abs) {
			t.Errorf("Near(%q) = %v, want %v", path, got, abs)
		}
	}
}

func TestNearIsFilteredAndShort(t *testing.T) {
	f := newFixture(t)
	for i := range 9 {
		f.write(t, fmt.Sprintf("ws/file%d.go", i), "")
	}
	asked := 0
	got := f.Near("file.go", func(path string) bool {
		asked++
		return !strings.HasSuffix(path, "file0.go") && path != f.path("ws/file2.go")
	})
	want := []string{f.path("ws/file1.go"), f.path("ws/file3.go"), f.path("ws/file4.go")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if asked != 5 {
		t.Errorf("allow was asked %d times, want 5", asked)
	}
}

func TestNearLooksAtAFewEntries(t *testing.T) {
	f := newFixture(t)
	for i := range 9 {
		f.write(t, fmt.Sprintf("ws/many/%d", i), "")
	}
	if n := len(f.names(f.path("ws/many"), 5)); n != 5 {
		t.Errorf("%d entries were looked at, want 5", n)
	}
}

// The distance against the textbook's recursion.
func TestDistance(t *testing.T) {
	var slow func(a, b []rune) int
	slow = func(a, b []rune) int {
		switch {
		case len(a) == 0:
			return len(b)
		case len(b) == 0:
			return len(a)
		case a[0] == b[0]:
			return slow(a[1:], b[1:])
		}
		return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
	}
	words := []string{"", "a", "ab", "ba", "abc", "acb", "main", "mian", "man", "domain", "日本", "本日"}
	for _, a := range words {
		for _, b := range words {
			want := min(slow([]rune(a), []rune(b)), maxDistance+1)
			if got := min(distance(a, b), maxDistance+1); got != want {
				t.Errorf("distance(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}
