package look

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// lay makes empty files below a new directory, and returns it.
func lay(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// secrets looks for secret.txt, and returns where it is, below root.
func secrets(t *testing.T, l *Looker, root string, left int) (found []string, whole bool) {
	t.Helper()
	hits, whole := l.Find(root, "secret", Search{Left: &left, Shut: []int{1},
		Judge: func(_ string, d fs.DirEntry, _ int) ([]int, bool) {
			if d.Name() == "secret.txt" {
				return []int{0}, false
			}
			return nil, true
		}})
	for _, h := range hits {
		rel, err := filepath.Rel(root, h.Path)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, filepath.ToSlash(rel))
	}
	slices.Sort(found)
	return found, whole
}

// Nothing that changes is missed, however it changes, and as soon as it has.
func TestChanges(t *testing.T) {
	t.Parallel()
	root := lay(t, "a/b/x", "c/d/secret.txt", "e/f/x")
	var l Looker
	in := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	for _, step := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return nil }, []string{"c/d/secret.txt"}},
		{func() error { return os.Rename(in("a/b/x"), in("a/b/secret.txt")) }, []string{"a/b/secret.txt", "c/d/secret.txt"}},
		{func() error { return os.Rename(in("c"), in("e/c")) }, []string{"a/b/secret.txt", "e/c/d/secret.txt"}},
		{func() error {
			return errors.Join(os.Rename(in("a"), in("t")), os.Rename(in("e"), in("a")), os.Rename(in("t"), in("e")))
		}, []string{"a/c/d/secret.txt", "e/b/secret.txt"}},
		{func() error { return os.RemoveAll(in("a")) }, []string{"e/b/secret.txt"}},
		{func() error { return os.Symlink("/etc/hostname", in("secret.txt")) }, []string{"e/b/secret.txt", "secret.txt"}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got, whole := secrets(t, &l, root, l.Limit()); !slices.Equal(got, step.want) || !whole {
			t.Errorf("found %q, whole %v; want %q", got, whole, step.want)
		}
	}
}

// Where there is too much, what was found before is found, and the rest is not taken for known.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	root := lay(t, "z/secret.txt", "f/1", "f/2", "f/3")
	var l Looker
	if got, whole := secrets(t, &l, root, 100); len(got) != 1 || !whole {
		t.Fatalf("found %q, whole %v", got, whole)
	}
	for left := range 8 {
		if got, whole := secrets(t, &l, root, left); len(got) != 1 || whole {
			t.Errorf("with %d left: found %q, whole %v", left, got, whole)
		}
	}
	if got, whole := secrets(t, new(Looker), root, 2); whole || len(got) > 1 {
		t.Errorf("of an unknown tree: found %q, whole %v", got, whole)
	}
}

// A directory that its owner shut is a hit itself: a command of that user could open it.
func TestShut(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root looks into every directory")
	}
	root := lay(t, "a/secret.txt", "b/x")
	var l Looker
	for _, mode := range []os.FileMode{0, 0o400} {
		if err := os.Chmod(filepath.Join(root, "a"), mode); err != nil {
			t.Fatal(err)
		}
		got, _ := secrets(t, &l, root, l.Limit())
		if err := os.Chmod(filepath.Join(root, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(got, "a") {
			t.Errorf("mode %o: found %q", mode, got)
		}
	}
	if err := os.Chmod(filepath.Join(root, "a"), 0o100); err != nil {
		t.Fatal(err)
	}
	left, opened := l.Limit(), []string(nil)
	hits, _ := l.Find(root, "secret", Search{Left: &left, Shut: []int{1},
		Judge: func(_ string, d fs.DirEntry, _ int) ([]int, bool) {
			return map[bool][]int{true: {0}}[d.Name() == "secret.txt"], d.IsDir()
		},
		Open: func(dir string) bool {
			opened = append(opened, dir)
			return os.Chmod(dir, 0o700) == nil
		}})
	if want := filepath.Join(root, "a"); !slices.Equal(opened, []string{want}) ||
		len(hits) != 1 || hits[0].Path != filepath.Join(want, "secret.txt") {
		t.Errorf("opened %q, found %v", opened, hits)
	}
}
