//go:build unix

package workspace

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// A root that was replaced by a FIFO was opened, which waited for ever for a writer; one that was replaced by a file
// gave an unknown error.
func TestRootBecomesNoDirectory(t *testing.T) {
	f := newFixture(t)
	for name, put := range map[string]func() error{
		"FIFO": func() error { return syscall.Mkfifo(f.path("ws"), 0o600) },
		"file": func() error { return os.WriteFile(f.path("ws"), nil, 0o600) },
	} {
		if err := os.RemoveAll(f.path("ws")); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{".", "a.txt", "dir/b.txt", f.path("ws")} {
			for _, access := range []Access{Read, Write} {
				if _, err := f.Open(path, access); !errors.Is(err, syscall.ENOTDIR) {
					t.Errorf("%s, %s: %v, want %v", name, path, err, syscall.ENOTDIR)
				}
			}
		}
	}
}
