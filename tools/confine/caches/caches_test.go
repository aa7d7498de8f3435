//go:build unix

package caches

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// fill makes files of 100 bytes below dir, each used an hour later than the one before.
func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	at := time.Now().Add(-1000 * time.Hour)
	for i, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100), 0o400); err != nil {
			t.Fatal(err)
		}
		used := at.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(path, used, used); err != nil {
			t.Fatal(err)
		}
	}
}

func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != lockName {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The caches of commands grew without end.
func TestTrim(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), leaktest.Dir(t) // a link has as many bytes as its target
	fill(t, outside, "mine")
	fill(t, dir, "commands/npm-global/lib/tool.js", "commands/go-build/00/old-d", "commands/go-mod/m@v1/a.go",
		"inspect/go-build/00/x-d", "commands/cargo/bin/tool", "commands/npm/_cacache/one", "commands/go-mod/m@v1/b.go",
		"commands/go-build/00/new-d")
	if err := os.Symlink(outside, filepath.Join(dir, "commands/go-mod/link")); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(dir, "commands/go-mod/m@v1")
	if err := os.Chmod(module, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(module, 0o700) }) // it is gone
	all := left(t, dir)
	if freed, err := Trim(t.Context(), dir, 1<<20); err != nil || freed != 0 || !slices.Equal(left(t, dir), all) {
		t.Errorf("with room: %d bytes, %v, left %q", freed, err, left(t, dir))
	}
	release, err := Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	if freed, err := Trim(t.Context(), dir, 600); !errors.Is(err, ErrInUse) || !slices.Equal(left(t, dir), all) {
		t.Errorf("in use: %d bytes, %v, left %q", freed, err, left(t, dir))
	}
	release()
	// The oldest three go: of those that can, go-mod was used after npm, by its last file.
	if freed, err := Trim(t.Context(), dir, 560); err != nil || freed != 300 {
		t.Errorf("freed %d bytes, %v", freed, err)
	}
	want := []string{
		"commands/cargo/bin/tool", "commands/go-build/00/new-d", "commands/go-mod/link", "commands/go-mod/m@v1/a.go",
		"commands/go-mod/m@v1/b.go", "commands/npm-global/lib/tool.js",
	}
	if got := left(t, dir); !slices.Equal(got, want) {
		t.Errorf("left %q, want %q", got, want)
	}
	if _, err := Trim(t.Context(), dir, 0); err != nil {
		t.Error(err)
	}
	want = []string{"commands/cargo/bin/tool", "commands/npm-global/lib/tool.js"}
	if got := left(t, dir); !slices.Equal(got, want) {
		t.Errorf("without room: left %q, want %q", got, want)
	}
	sizes := []Usage{{"commands/cargo", 100}, {"commands/npm-global", 100}}
	if parts, err := Parts(t.Context(), dir); err != nil || !slices.Equal(parts, sizes) {
		t.Errorf("%v, %v", parts, err)
	}
	if err := Remove(dir); err != nil || len(left(t, dir)) > 0 {
		t.Errorf("%v, left %q", err, left(t, dir))
	}
	if got := left(t, outside); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("behind a link: %q", got)
	}
}
