package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	changeName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*\.md$`)
	changeKind = regexp.MustCompile(`^(New|Fix|Security|Change): [^\s]`)
)

// maxChange is how long the text of a change may be, in bytes: three sentences.
const maxChange = 500

// changeFault says what is wrong with a file of changelog/unreleased; "": nothing.
func changeFault(name, text string) string {
	body := strings.TrimSuffix(text, "\n")
	switch {
	case !changeName.MatchString(name):
		return "its name is not of lower-case words joined by -, with .md"
	case !changeKind.MatchString(body):
		return "it does not begin with New:, Fix:, Security: or Change:"
	case body == text || strings.Contains(body, "\n\n") || strings.TrimSpace(body) != body:
		return "it is not one paragraph that ends with a line feed"
	case !strings.HasSuffix(body, "."):
		return "it does not end with a full stop"
	case len(body) > maxChange:
		return fmt.Sprintf("it has %d bytes; %d are enough for what a user must know", len(body), maxChange)
	}
	return ""
}

// releasedFault says what is wrong with a line of CHANGELOG.md below the head of a release; "": nothing.
func releasedFault(line string) string {
	for _, begin := range []string{"## ", "### ", "- ", "  "} {
		if rest, ok := strings.CutPrefix(line, begin); ok && rest != "" && rest[0] != ' ' {
			return ""
		}
	}
	if line == "" {
		return ""
	}
	return "it is neither a head nor an item"
}

// What a user reads about a release is put together from files of one form, so that two changes never meet in one file.
func TestChangelog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root, "changelog", "unreleased")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "README.md" {
			continue
		}
		if fault := changeFault(e.Name(), readText(t, filepath.Join(dir, e.Name()))); fault != "" {
			t.Errorf("changelog/unreleased/%s: %s; changelog/unreleased/README.md has the form", e.Name(), fault)
		}
	}
	released := false
	for i, line := range strings.Split(readText(t, filepath.Join(root, "CHANGELOG.md")), "\n") {
		released = released || strings.HasPrefix(line, "## ")
		if fault := releasedFault(line); released && fault != "" {
			t.Errorf("CHANGELOG.md:%d: %s", i+1, fault)
		}
	}
	if !released {
		t.Error("CHANGELOG.md has no release")
	}
}

func TestChangeFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		good       bool
	}{
		{"word-count.md", "New: count the words of a file (`word_count`).\n", true},
		{"tls13.md", "Change: TLS 1.2 is refused now.\nSet `http.tls_min` to allow it.\n", true},
		{"Word.md", "New: words.\n", false},
		{"2026-11-word.md", "New: words.\n", false},
		{"word.txt", "New: words.\n", false},
		{"word.md", "Words.\n", false},
		{"word.md", "Added: words.\n", false},
		{"word.md", "New: words\n", false},
		{"word.md", "New: words.", false},
		{"word.md", "New: words.\n\nMore words.\n", false},
		{"word.md", "New: " + strings.Repeat("words ", 100) + ".\n", false},
	} {
		if fault := changeFault(c.name, c.text); (fault == "") != c.good {
			t.Errorf("%s %q: got %q, want good: %v", c.name, c.text, fault, c.good)
		}
	}
	for line, good := range map[string]bool{"## 0.1": true, "### Files": true, "- Read files.": true, "  more of it.": true, "": true,
		"Read files.": false, "* Read files.": false, "-": false, "    code": false} {
		if fault := releasedFault(line); (fault == "") != good {
			t.Errorf("%q: got %q, want good: %v", line, fault, good)
		}
	}
}
