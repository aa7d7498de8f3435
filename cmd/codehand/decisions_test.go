package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var placeOfDecision = regexp.MustCompile("`([^`]+)`")

// TestDecisions: each page in docs/decisions has its parts and stands in the index, and names places that are there.
func TestDecisions(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root, "docs", "decisions")
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "[0-9]*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%s has no decisions: %v", dir, err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(b)
		title, _, _ := strings.Cut(text, "\n")
		if !strings.Contains(string(index), "["+strings.TrimPrefix(title, "# ")+"]("+name+")") {
			t.Errorf("docs/decisions/README.md does not list %s by its title", name)
		}
		for _, part := range []string{"Problem", "Decision", "Where", "When to look again"} {
			if !strings.Contains(text, "\n**"+part+"**: ") {
				t.Errorf("%s does not say: %s", name, part)
			}
		}
		_, where, _ := strings.Cut(text, "\n**Where**: ")
		where, _, _ = strings.Cut(where, "\n\n")
		for _, m := range placeOfDecision.FindAllStringSubmatch(where, -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s names %s, which is not there: name the room that has it now", name, m[1])
			}
		}
	}
}
