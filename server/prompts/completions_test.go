package prompts

import (
	"strings"
	"testing"
)

// TestAlternatives: choices are read from hints as people write them.
func TestAlternatives(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hint string
		n    int
		want string
	}{
		{"[major|minor|patch]", 0, "major minor patch"},
		{"[major | minor | patch]", 0, "major minor patch"},
		{"<a|b> [c|d]", 1, "c d"},
		{"(on|off)", 0, "on off"},
		{"[file] [a|b]", 0, ""},
		{"[file] [a|b]", 1, "a b"},
		{"[a|b]", 1, ""},
		{"[a||b|]", 0, "a b"},
		{"free text", 0, ""},
		{"", 0, ""},
		{"[a|b]...", 0, "a b"},
	} {
		if got := strings.Join(alternatives(c.hint, c.n), " "); got != c.want {
			t.Errorf("%q %d: %q, want %q", c.hint, c.n, got, c.want)
		}
	}
}

// TestHiddenInCompletions: a word of a skill's hint with invisible characters was proposed as it was, so that a person
// sent what the client did not show.
func TestHiddenInCompletions(t *testing.T) {
	t.Parallel()
	hint := "[plain|le\u200bft|\u202eright|\x1b[31mred|größe|\U000e0041tag] <x>"
	if got := strings.Join(alternatives(hint, 0), " "); got != "plain größe" {
		t.Errorf("%q", got)
	}
}
