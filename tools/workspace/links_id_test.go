package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"codehand/filestate/leaktest"
)

func TestNamesByID(t *testing.T) {
	t.Parallel()
	if maxLinkEntries == 0 {
		t.Skip("this system does not tell how many names a file has")
	}
	dir := leaktest.Dir(t)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, err := range []error{os.WriteFile(a, nil, 0o600), os.Link(a, b), os.WriteFile(filepath.Join(dir, "c"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	space, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string][]string{"a": {a, b}, "b": {a, b}, "c": nil} {
		info, err := root.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		file, ok := identify(root, name, info)
		if !ok {
			t.Fatalf("%s has no identity", name)
		}
		got, whole := space.NamesByID(file.id.dev, file.id.ino)
		if got = slices.Sorted(slices.Values(got)); !slices.Equal(got, want) || !whole {
			t.Errorf("%s: got %v, %v, want %v", name, got, whole, want)
		}
	}
}
