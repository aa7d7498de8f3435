package leaktest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"A=/t/12\x00B=1": true, "/t/12": true, "/t/12/x": true, "/t/123": false, "/t/123 /t/12/": true, "/t/1": false,
	} {
		if mentions([]byte(text), "/t/12") != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

// A run that was killed left a mounted directory, which no later one could remove.
func TestRemoveMounted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	point := filepath.Join(dir, "a mount", "point")
	if err := os.MkdirAll(point, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", point, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here: ", err)
	}
	if err := os.Mkdir(filepath.Join(point, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	removeAll(dir)
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
		unmount(dir)
	}
}
