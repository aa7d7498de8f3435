package bash

import (
	"strings"
	"testing"
)

// A command of 100,000 bytes once cost 20 GB: each of its words began a form that held the rest of the line. What is not
// read is for a person.
func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		person     bool
	}{
		{"wrappers", strings.Repeat("time ", 20_000) + "ls", true},
		{"wrappers that do not parse", strings.Repeat("time ", 20_000) + "ls (", true},
		{"words behind xargs", "xargs -Z " + strings.Repeat("a ", 45_000), true},
		{"long words behind env", "env -Z " + strings.Repeat(strings.Repeat("a", 300)+" ", 300), true},
		{"a long list", "cp " + strings.Repeat("file ", 19_000) + "dir", false},
	} {
		a := Analyze(c.text, inRoot)
		size := 0
		for _, p := range a.Parts {
			for _, f := range p.Forms {
				size += len(f)
			}
		}
		if size > maxHeads*len(c.text)+8*maxForms || // those as written share the text
			a.Class == ReadOnly || (a.Person != "") != c.person {
			t.Errorf("%s: %d bytes of forms, class %v, person %q", c.name, size, a.Class, a.Person)
		}
	}
}

// A rule that denies was passed by a word with more alternatives than are read: bash runs `git push`.
func TestTooManyBraces(t *testing.T) {
	t.Parallel()
	many := strings.Repeat(",a", maxBraced)
	for _, command := range []string{"git {push" + many + "}", "{git" + many + "} push", "git " + strings.Repeat("{", maxBraced) + "{push,x}"} {
		if a := Analyze(command, nil); a.Person == "" {
			t.Errorf("%s: no person is asked", command)
		}
	}
	if a := Analyze("git {push,pull}", nil); a.Person != "" {
		t.Error(a.Person)
	}
}

// Each command of a line of a hundred KB had a longer directory than the one before: 240 MB, and seconds.
func TestPathsAreBounded(t *testing.T) {
	t.Parallel()
	for _, command := range []string{strings.Repeat("cd dir && cat x && ", 4000), "git " + strings.Repeat("-C dir ", 10_000) + "rm x"} {
		for _, f := range Analyze(command, nil).Files {
			if len(f.Path) > 2*maxPath {
				t.Fatalf("a path of %d bytes", len(f.Path))
			}
		}
	}
}
