//go:build unix

package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"codehand/filestate/disk"
)

// A FIFO in the place of a file that git reads held up every command of the work tree, for ever.
func TestReadSmall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, dir, "file", "text")
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "file", "zero": "/dev/zero", "piped": "fifo", "loop": "loop"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"file": "text", "link": "text", "fifo": "", "piped": "", "zero": "",
		"loop": "", ".": "", "none": ""} {
		text, err := ReadSmall(at(name), 4)
		if string(text) != want || (err == nil) != (want != "") || errors.Is(err, fs.ErrNotExist) != (name == "none") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := ReadSmall(at("file"), 3); !errors.Is(err, disk.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
}
