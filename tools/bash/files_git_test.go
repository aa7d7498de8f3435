package bash

import (
	"slices"
	"strings"
	"testing"
)

// Analysis lists every directory where git may start, or says that it cannot: in a missing one, git would obey a
// configuration that was not checked.
func TestGitPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"ls", ""},
		{"git log", "."},
		{"git -C a log | head", "a"},
		{"git -C a -C b --no-pager log", "a/b"},
		{"git -P -C '/x y' status", "/x y"},
		{"cd a && git log", "a"},
		{"cd a; cd b; git log; git -C /c log", ". a b a/b /c"},
		{"cd -P -- \"a b\" && git log", ";a b"},
		{"[ -e x ] && git log", "."},
		{"! git log", "."},
		{"command -v git && git log", "."},
		{"git --version", "."},
		{"git log -- '*.go'", "."},
		{"cd $X && git log", "?"},
		{"cd && git log", "?"},
		{"cd - && git log", "?"},
		{"cd a* && git log", "?"},
		{"cd ../x && git log", "?"},
		{"cd ~/x && git log", "?"},
		{"cd {a,b} && git log", "?"},
		{"git -C \"$X\" log", "?"},
		{"git -C a/../../b log", "?"},
		{"git --git-dir=x log", "?"},
		{"git -Cx log", "x"},
		{"git \"$X\" log", "?"},
		{"pushd a; git log", ". a"},
		{"eval cd a; git log", "?"},
		{"command cd a; git log", "?"},
		{"$X a; git log", "?"},
		{"f() { cd a; }; f; git log", "?"},
		{"echo $(cd a; git log)", ". a"},
		{"git -C", "."},
		{strings.Repeat("cd a; ", 40) + "git log", "?"},
	} {
		places, all := newScript(c.command).found().gitPlaces()
		if c.want == "?" {
			if all {
				t.Errorf("%q: %q are not all", c.command, places)
			}
			continue
		}
		sep := " "
		if strings.Contains(c.want, ";") || strings.Contains(c.want, "x y") {
			sep = ";"
		}
		want := strings.Split(c.want, sep)
		want = slices.DeleteFunc(want, func(place string) bool { return place == "" })
		slices.Sort(want)
		if !all || !slices.Equal(places, want) {
			t.Errorf("%q: %q %v, want %q", c.command, places, all, want)
		}
	}
}

// Only git is distrusted, and what stands beside it keeps its class; the parts that others hold stay as they were.
func TestDistrust(t *testing.T) {
	t.Parallel()
	parts := []Part{{Text: "ls", Class: ReadOnly}, {Text: "git log", Class: ReadOnly}, {Text: "git push", Class: Writes, Why: "R6: push"}}
	a := Analysis{Class: ReadOnly, Parts: parts, OfGit: OfGit{Git: []string{"."}}}
	a.Distrust("core.pager is set")
	if a.Class != Writes || a.Why != "R6: git: core.pager is set" || a.Git != nil {
		t.Errorf("%+v", a)
	}
	if a.Parts[0].Class != ReadOnly || a.Parts[1].Class != Writes || a.Parts[1].Why != a.Why || a.Parts[2].Why != "R6: push" {
		t.Errorf("%+v", a.Parts)
	}
	if parts[1].Class != ReadOnly {
		t.Error("the parts of another analysis were changed")
	}
	a = Analysis{Class: Dangerous, Why: "D1", Parts: parts}
	a.Distrust("x")
	if a.Class != Dangerous || a.Why != "D1" {
		t.Errorf("%+v", a)
	}
	a = Analysis{Class: ReadOnly, Parts: parts, OfGit: OfGit{Git: []string{"."}}}
	a.Doubt("there is no bash")
	if a.Class != Writes || a.Why != "there is no bash" || a.Git != nil || a.Parts[0].Class != Writes || a.Parts[2].Why != "R6: push" {
		t.Errorf("%+v", a)
	}
}
