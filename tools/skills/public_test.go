package skills_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/skills"
)

var update = flag.Bool("update", false, "rewrite golden files")

// given are the arguments of each skill in testdata; the others get none.
var given = map[string]string{
	"fix-issue": `123 "very high"`,
	"commit":    `src/a.go "say why"`,
	"migrate":   `SearchBar 'React 18' Vue`,
	"explore":   `how $0 and $ARGUMENTS and !` + "`rm -rf x`" + ` get in`,
	"examples":  `origin/main`,
	"windows":   `caf\ é`,
	"review":    `the last commit`,
	"changelog": `1.2`,
	"plain":     "two\nlines",
}

// TestPublicFormat shows what becomes of skills as people write them: every key of the front matter, every substitution.
func TestPublicFormat(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	d, x := newDisk(t, dir), skills.New()
	set, err := x.Scan(t.Context(), d, []skills.Dir{
		{Path: filepath.Join(dir, "public"), Trust: skills.User},
		{Path: filepath.Join(dir, "commands"), Flat: true},
	})
	if err != nil || len(set.Dropped) > 0 {
		t.Fatalf("dropped %v, error %v", set.Dropped, err)
	}
	if len(set.Skills) < 12 {
		t.Errorf("only %d skills", len(set.Skills))
	}
	for _, s := range set.Skills {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			golden(t, filepath.Join("testdata", "want", s.Name+".txt"), strings.ReplaceAll(show(t, x, d, s), filepath.ToSlash(dir), "$DIR"))
		})
	}
}

// show writes all that there is to know about a skill.
func show(t *testing.T, x *skills.Index, d *disk, s skills.Skill) string {
	t.Helper()
	var b strings.Builder
	row := func(name string, v any) {
		if text := fmt.Sprintf("%q", v); text != `""` && text != "[]" && text != `%!q(bool=false)` {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.TrimSuffix(strings.TrimPrefix(text, "%!q(bool="), ")"))
		}
	}
	row("description", s.Description)
	row("when to use", s.WhenToUse)
	row("hint", s.Hint)
	row("arguments", s.Arguments)
	row("model off", s.ModelOff)
	row("user off", s.UserOff)
	row("allowed", s.Allowed)
	row("fork", s.Fork)
	row("agent", s.Agent)
	row("shell", s.Shell)
	row("paths", s.Paths)
	row("loose", s.Loose)
	row("flat", s.Flat)
	row("public", s.Public())
	fmt.Fprintf(&b, "front: %s\n", s.Front)
	entries, complete, err := x.Manifest(t.Context(), d, s, 1<<40)
	if err != nil || !complete || entries[0].Path == "SKILL.md" && entries[0].SHA256 != s.Sum {
		t.Errorf("manifest %v, complete %v, error %v", entries, complete, err)
	}
	for _, e := range entries {
		fmt.Fprintf(&b, "file: %s %d %.8s\n", e.Path, e.Size, e.SHA256)
	}
	body, err := x.Body(t.Context(), d, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := skills.Render(s, body, skills.Arguments{Text: given[s.Name], Project: "/w/project", Session: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.Text(func(command string) (string, error) { return "<<" + command + ">>\n", nil })
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "rendered with %q:\n%s", given[s.Name], text)
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./tools/skills -update writes it", err)
	}
	if string(want) != got {
		t.Errorf("%s: got\n%s\nwant\n%s\ngo test ./tools/skills -update rewrites it", path, got, want)
	}
}
