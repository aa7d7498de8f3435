//go:build unix

package skills_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/tools/skills"
)

// A pipe without a writer does not hold up a Scan, and one that comes later no Body.
func TestPipe(t *testing.T) {
	t.Parallel()
	d, x := newDisk(t, t.TempDir()), skills.New()
	write(t, skillFile(d, "", "good"), "text")
	if err := os.Mkdir(filepath.Join(d.dir, "pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(skillFile(d, "", "pipe"), 0o644); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	if err := syscall.Mkfifo(filepath.Join(d.dir, "good", "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	set := scan(t, x, d, "")
	if names(set) != "good" || len(set.Dropped) != 1 || !strings.Contains(set.Dropped[0].Reason, "not a regular file") {
		t.Fatalf("got %+v", set)
	}
	s := set.Skills[0]
	if files, more, err := x.Files(t.Context(), d, s, 9); err != nil || more || len(files) != 1 {
		t.Errorf("got %q, %v, %v", files, more, err)
	}
	if err := os.Remove(s.File); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.File, 0o644); err != nil {
		t.Fatal(err)
	}
	if body, err := x.Body(t.Context(), d, s); err == nil {
		t.Errorf("got %q of a pipe", body)
	}
}
