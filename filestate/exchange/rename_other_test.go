//go:build !linux && !darwin

package exchange_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"codehand/filestate/exchange"
)

// What the system cannot do in one step is said so, and a new name is still never taken from another file.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, name := range []string{"a", "b"} {
		if err := dir.WriteFile(name, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := exchange.Swap(dir, "a", "b"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Swap: %v", err)
	}
	if err := exchange.RenameNew(dir, "a", "c"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("RenameNew: %v", err)
	}
	if err := exchange.PublishNew(dir, "a", "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("PublishNew onto a file: %v", err)
	}
	if err := exchange.PublishNew(dir, "a", "c"); err != nil {
		t.Errorf("PublishNew: %v", err)
	}
	for name, want := range map[string]string{"b": "b", "c": "a"} {
		if got, err := dir.ReadFile(name); string(got) != want {
			t.Errorf("%s holds %q, want %q: %v", name, got, want, err)
		}
	}
}
