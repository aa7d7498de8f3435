package git

import (
	"os"
	"path/filepath"
	"testing"
)

// A file renamed onto .git/config took away what was mounted over it for a job that ran.
func TestUpdateConfigInPlace(t *testing.T) {
	t.Parallel()
	for _, inPlace := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte("[core]\n\tbare = false\n"), 0o640); err != nil {
			t.Fatal(err)
		}
		was, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = dir.Close() }()
		for _, next := range []string{"[core]\n\tbare = false\n[user]\n\tname = A\n", "[core]\n", ""} {
			if err := UpdateConfig(dir, "config", inPlace, func([]byte) ([]byte, error) { return []byte(next), nil }); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); string(got) != next {
				t.Errorf("in place %v: got %q (%v), want %q", inPlace, got, err, next)
			}
		}
		now, err := os.Lstat(path)
		if err != nil || now.Mode() != was.Mode() || inPlace && !os.SameFile(was, now) {
			t.Errorf("in place %v: another file, or its mode is %v (%v)", inPlace, now.Mode(), err)
		}
		if names, _ := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
			t.Errorf("in place %v: %v is left", inPlace, names)
		}
	}
}
