//go:build linux || darwin

package exchange_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"codehand/filestate/exchange"
)

// A place is a directory with a handle of it.
type place struct {
	*testing.T
	path string
	dir  *os.Root
}

func newPlace(t *testing.T) place {
	t.Helper()
	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return place{t, path, dir}
}

// make fills the place: "" is a directory, ">x" a link to x, and everything else the content of a file.
func (p place) make(entries map[string]string) {
	p.Helper()
	for name, is := range entries {
		var err error
		switch {
		case is == "":
			err = p.dir.Mkdir(name, 0o700)
		case is[0] == '>':
			err = p.dir.Symlink(is[1:], name)
		default:
			err = p.dir.WriteFile(name, []byte(is), 0o600)
		}
		if err != nil {
			p.Fatal(err)
		}
	}
}

// holds compares the place with what it should be, in the form of make.
func (p place) holds(want map[string]string) {
	p.Helper()
	entries, err := os.ReadDir(p.path)
	if err != nil {
		p.Error(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		at := filepath.Join(p.path, e.Name())
		switch e.Type() {
		case fs.ModeDir:
			got[e.Name()] = ""
		case fs.ModeSymlink:
			to, _ := os.Readlink(at)
			got[e.Name()] = ">" + to
		default:
			b, err := os.ReadFile(at)
			if err != nil {
				p.Error(err)
			}
			got[e.Name()] = string(b)
		}
	}
	if !maps.Equal(got, want) {
		p.Errorf("there are %q, want %q", got, want)
	}
}

var renames = map[string]func(dir *os.Root, from, to string) error{"RenameNew": exchange.RenameNew, "PublishNew": exchange.PublishNew}

// A name that stands for anything is never taken from it, and the file keeps its own.
func TestOnlyNewNames(t *testing.T) {
	t.Parallel()
	for name, rename := range renames {
		for what, is := range map[string]string{"file": "theirs", "directory": "", "link": ">other", "link to nothing": ">nothing", "link to itself": ">taken"} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				entries := map[string]string{"temp": "ours", "taken": is, "other": "other's"}
				p.make(entries)
				if err := rename(p.dir, "temp", "taken"); !errors.Is(err, fs.ErrExist) {
					t.Errorf("got %v, want that the name exists", err)
				}
				p.holds(entries)
			})
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.make(map[string]string{"temp": "ours", "other": "other's"})
			if err := rename(p.dir, "missing", "new"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("of a file that is not there: %v", err)
			}
			if err := rename(p.dir, "temp", "new"); err != nil {
				t.Error(err)
			}
			p.holds(map[string]string{"new": "ours", "other": "other's"})
		})
	}
}

// Of many files that want a name at once, one gets it, and the others stay.
func TestOneGetsTheName(t *testing.T) {
	t.Parallel()
	for name, rename := range renames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 50 {
				p := newPlace(t)
				files := []string{"a", "b", "c", "d"}
				done := make(chan error)
				for _, f := range files {
					p.make(map[string]string{f: f})
				}
				for _, f := range files {
					go func() { done <- rename(p.dir, f, "name") }()
				}
				got := 0
				for range files {
					if err := <-done; err == nil {
						got++
					} else if !errors.Is(err, fs.ErrExist) {
						t.Error(err)
					}
				}
				if entries, err := os.ReadDir(p.path); got != 1 || len(entries) != len(files) || err != nil {
					t.Fatalf("%d got the name, and %d files are left: %v", got, len(entries), err)
				}
			}
		})
	}
}

// Two names have each other's file afterwards, whatever that is, or all is as it was.
func TestSwap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after map[string]string
		want          error
	}{
		"files":             {map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "2", "b": "1"}, nil},
		"file and link":     {map[string]string{"a": "1", "b": ">a"}, map[string]string{"a": ">a", "b": "1"}, nil},
		"file, broken link": {map[string]string{"a": "1", "b": ">x"}, map[string]string{"a": ">x", "b": "1"}, nil},
		"file, directory":   {map[string]string{"a": "1", "b": ""}, map[string]string{"a": "", "b": "1"}, nil},
		"no second":         {map[string]string{"a": "1"}, map[string]string{"a": "1"}, fs.ErrNotExist},
		"no first":          {map[string]string{"b": "1"}, map[string]string{"b": "1"}, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.make(c.before)
			if err := exchange.Swap(p.dir, "a", "b"); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			p.holds(c.after)
		})
	}
}

// A name is that of the directory that was opened, wherever this is now.
func TestOfAMovedDirectory(t *testing.T) {
	t.Parallel()
	up := t.TempDir()
	was, now := filepath.Join(up, "was"), filepath.Join(up, "now")
	if err := os.Mkdir(was, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(was)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p := place{t, now, dir}
	p.make(map[string]string{"a": "1", "b": "2", "temp": "3"})
	if err := os.Rename(was, now); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(was, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(exchange.Swap(dir, "a", "b"), exchange.RenameNew(dir, "temp", "c"), exchange.PublishNew(dir, "c", "d")); err != nil {
		t.Error(err)
	}
	p.holds(map[string]string{"a": "2", "b": "1", "d": "3"})
}
