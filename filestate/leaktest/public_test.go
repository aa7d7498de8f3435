package leaktest

import (
	"os"
	"path/filepath"
	"testing"
)

// Others can enter the directory also if TMPDIR is private, and it goes with the test.
func TestPublic(t *testing.T) {
	private := filepath.Join(t.TempDir(), "a private place")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, temp := range []string{os.TempDir(), private} {
		var dir string
		t.Run("", func(t *testing.T) {
			t.Setenv("TMPDIR", temp)
			dir = Public(t)
			if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if !entered(dir) {
				t.Errorf("TMPDIR=%s: others cannot enter %s", temp, dir)
			}
		})
		if _, err := os.Lstat(dir); dir != "" && !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}
