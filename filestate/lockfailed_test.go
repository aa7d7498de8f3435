package filestate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate/journal"
)

// A lock that cannot be made names the file that it is for, not the first one.
func TestLockFailedNamesItsFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, wrong := range []string{"a", "b", "c"} {
		locks := t.TempDir()
		l := New(Options{Dir: locks})
		var edits []Edit
		for _, name := range []string{"a", "b", "c"} {
			path := filepath.Join(dir, name)
			edits = append(edits, Edit{File: File{Dir: root, Name: name, Path: path}, Unseen: true, Change: func([]byte) ([]byte, error) { return []byte("x"), nil }})
		}
		// A directory where the lock file should be.
		sum := sha256.Sum256([]byte(filepath.Join(dir, wrong)))
		inTheWay := filepath.Join(locks, hex.EncodeToString(sum[:16]))
		if err := os.Mkdir(inTheWay, 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := l.Update(t.Context(), journal.By{}, edits...)
		if e, ok := errors.AsType[*WriteError](err); !ok || e.Path != filepath.Join(dir, wrong) {
			t.Errorf("%s: got %v", wrong, err)
		}
	}
}
