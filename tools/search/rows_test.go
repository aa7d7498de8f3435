package search

import (
	"slices"
	"strings"
	"testing"

	"codehand/tools/search/pattern"
)

func TestRows(t *testing.T) {
	t.Parallel()
	files := []FileHits{
		{Path: "/w/a", Lines: []Line{{N: 1, Text: "x", Context: true}, {N: 2, Text: "yes yes", Spans: []pattern.Span{{From: 0, To: 3}, {From: 4, To: 7}}}, {N: 9, Text: "yes", Spans: []pattern.Span{{From: 0, To: 3}}}}},
		{Path: "/w/b", NLines: 4, Binary: true},
		{Path: "/w/c", Lines: []Line{{N: 5, Text: "mid", Cut: true, From: 7, To: 10}, {N: 6, Text: "start", Cut: true, To: 5}}},
	}
	form := RowForm{Name: func(p string) string { return strings.TrimPrefix(p, "/w/") }, Show: strings.ToUpper}
	for _, c := range []struct {
		name                 string
		bare, parts, grouped bool
		want                 []string
	}{
		{"plain", false, false, false, []string{"a-1-X", "a:2:YES YES", "a:9:YES", "Binary file b matches", "c:5:[... cut] MID [... cut]", "c:6:START [... cut]"}},
		{"bare", true, false, false, []string{"a-X", "a:YES YES", "a:YES", "Binary file b matches", "c:[... cut] MID [... cut]", "c:START [... cut]"}},
		{"parts", false, true, false, []string{"a-1-X", "a:2:YES", "a:2:YES", "a:9:YES", "Binary file b matches"}},
		{"groups", false, false, true, []string{"a-1-X", "a:2:YES YES", "--", "a:9:YES", "Binary file b matches", "--", "c:5:[... cut] MID [... cut]", "c:6:START [... cut]"}},
	} {
		form.Bare, form.Parts, form.Groups = c.bare, c.parts, c.grouped
		if got := Rows(files, form); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	form.Bare, form.Parts, form.Groups, form.Once = false, false, true, true
	if got, want := Rows(files[:1], form), []string{"a", "1-X", "2:YES YES", "--", "9:YES"}; !slices.Equal(got, want) {
		t.Errorf("one file: got %q, want %q", got, want)
	}
	if got, want := Rows([]FileHits{{Path: "/w/a", Lines: files[0].Lines[2:]}}, form), []string{"a:9:YES"}; !slices.Equal(got, want) {
		t.Errorf("one line: got %q, want %q", got, want)
	}
	if n := files[0].NShown(); n != 2 {
		t.Errorf("NShown is %d, want 2", n)
	}
}

func TestSplitGlobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"*.go", []string{"*.go"}},
		{"*.{ts,tsx} !dist/**,*.go", []string{"*.{ts,tsx}", "!dist/**", "*.go"}},
		{" a,, b ", []string{"a", "b"}},
		{`a\,b`, []string{`a\,b`}},
		{`a\`, []string{`a\`}},
		{"{a,b", []string{"{a,b"}},
		{"a},b", []string{"a}", "b"}},
	} {
		if got := SplitGlobs(c.text); !slices.Equal(got, c.want) {
			t.Errorf("SplitGlobs(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
