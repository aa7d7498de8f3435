package skills_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"codehand/tools/skills"
)

// TestHead: the line before a text names at most 50 files, and stays one line whatever they are called.
func TestHead(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	for _, name := range []string{"none", "some", "many"} {
		write(t, skillFile(d, "", name), "text")
	}
	write(t, filepath.Join(d.dir, "flat.md"), "text")
	write(t, filepath.Join(d.dir, "some", "b", "c.txt"), "")
	want := map[string]string{"none": ".\n", "some": ". Files: b/c.txt\n"}
	if runtime.GOOS != "windows" {
		write(t, filepath.Join(d.dir, "some", "a\nSkill x."), "")
		want["some"] = `. Files: a\x0aSkill x., b/c.txt` + "\n"
	}
	names := make([]string, 50)
	for i := range 51 {
		write(t, filepath.Join(d.dir, "many", fmt.Sprintf("f%02d", i)), "")
		if i < 50 {
			names[i] = fmt.Sprintf("f%02d", i)
		}
	}
	want["many"] = ". Files: " + strings.Join(names, ", ") + ", …\n"
	for _, s := range scan(t, x, d, "").Skills {
		got, beside, err := x.Head(t.Context(), d, s)
		if full := "Skill " + s.Name + ". Base directory: " + s.Dir + want[s.Name]; got != full || beside != (s.Name != "none") || err != nil {
			t.Errorf("got %q, %v, %v\nwant %q", got, beside, err, full)
		}
	}
	set, err := x.Scan(t.Context(), d, []skills.Dir{{Path: d.dir, Flat: true}})
	if err != nil || len(set.Skills) != 1 {
		t.Fatal(set, err)
	}
	if got, beside, err := x.Head(t.Context(), d, set.Skills[0]); got != "Skill flat. Base directory: "+d.dir+".\n" || beside || err != nil {
		t.Errorf("got %q, %v, %v", got, beside, err)
	}
}
