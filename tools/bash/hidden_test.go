package bash

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// hiddenRows returns a section of testdata/hidden.txt.
func hiddenRows(t *testing.T, section string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/hidden.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "-- "+section+" --\n")
	text, _, _ = strings.Cut(text, "\n-- ")
	commands := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\n", "\x00"), "\x00")
	for i := range commands {
		commands[i] = strings.ReplaceAll(commands[i], "⏎", "\n")
	}
	if len(commands) < 90 {
		t.Fatalf("%d commands in section %s", len(commands), section)
	}
	return commands
}

// sees says whether a rule that denies `rm *` sees a part of a command.
func sees(a *Analysis) bool {
	return slices.ContainsFunc(a.Parts, func(p Part) bool {
		return slices.ContainsFunc(p.Forms, func(form string) bool { return form == "rm" || strings.HasPrefix(form, "rm ") })
	})
}

// underStar says whether a rule with a star for the name of each part would allow the whole, though it runs `rm x`.
func underStar(a *Analysis) bool {
	return a.Class != Dangerous && !a.Unclear && a.Person == "" && !slices.ContainsFunc(a.Parts, func(p Part) bool {
		name, _, _ := strings.Cut(p.Text, " ")
		return !p.Inner && (p.Exact || p.Lead != "" || name == "rm" || assigned(name) != "")
	})
}

// A rule that denies `rm *` was passed by code in subscripts, arithmetic, prompts, options and the words of wrappers, and
// a rule with a star for the program covered it.
func TestHidden(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"data", "programs"} {
		for _, command := range hiddenRows(t, section) {
			a := Analyze(command, inRoot)
			if strings.Contains(command, "rm") && !sees(&a) && a.Hidden == "" && a.Person == "" {
				t.Errorf("%s: passes a rule that denies rm (%v %s)", command, a.Class, a.Why)
			}
			if underStar(&a) {
				t.Errorf("%s: a rule with a star covers it (%v %s)", command, a.Class, a.Why)
			}
		}
	}
}

// Text that only looks hidden does not stop rules with a star, and causes no more questions.
func TestNotHidden(t *testing.T) {
	t.Parallel()
	for _, command := range hiddenRows(t, "free") {
		a := Analyze(command, inRoot)
		if a.Hidden != "" || a.Person != "" || !underStar(&a) || sees(&a) {
			t.Errorf("%s: hidden %q, person %q, under a star %v, sees rm %v (%v %s): %+v", command, a.Hidden, a.Person, underStar(&a), sees(&a), a.Class, a.Why, a.Parts)
		}
	}
}

// `cat <<'E'# ; rm x` was read-only and ran rm: our parser takes E for the delimiter and the rest for a comment, bash
// takes `E#`, and the here-document ends nowhere near.
func TestDelimitersAreCertain(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"cat <<'E'# ; rm x\nhello\nE", "cat <<\"E\"#; rm x\nhello\nE", "cat <<-'E'x\nrm x\nE\nrm x", "cat <<'E'$x\nrm x\nE"} {
		if a := Analyze(command, inRoot); a.Class == ReadOnly || !a.Unclear || a.Hidden == "" || !sees(&a) {
			t.Errorf("%q: %v, unclear %v, hidden %q, rm seen %v", command, a.Class, a.Unclear, a.Hidden, sees(&a))
		}
	}
	for _, command := range []string{"cat <<'E'\nhello\nE", "cat <<'E' | wc -l\nhello\nE", "cat <<'E';ls\nhello\nE", "cat <<'E'&&ls\nhello\nE"} {
		if a := Analyze(command, inRoot); a.Class != ReadOnly {
			t.Errorf("%q: %s", command, a.Why)
		}
	}
}
