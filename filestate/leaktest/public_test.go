package leaktest

import (
	"os"
	"path/filepath"
	"strings"
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

// A directory of a test and a socket in it do not depend on how deep TMPDIR is.
func TestDirDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("a deep directory/", 12))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Run("", func(t *testing.T) {
		t.Setenv("TMPDIR", deep)
		for range 60 { // many tests have one at once
			if dir := Dir(t); len(dir) > maxDir {
				t.Fatalf("%s has %d bytes", dir, len(dir))
			}
		}
		path := filepath.Join(deep, "socket")
		Socket(t, path)
		if info, err := os.Stat(path); err != nil || info.Mode().Type() != os.ModeSocket {
			t.Errorf("%v, %v", info, err)
		}
	})
}
