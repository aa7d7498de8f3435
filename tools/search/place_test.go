package search

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file system that answers EINVAL for its own reasons was taken for a link that came and went, and the caller was told for
// ever that another program changes the file.
func TestPlaceRefusedBySystem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []error // of the opens, in order; what follows is the real one
		swapped bool    // after each open a new file has the name
		want    error   // nil: it is opened
		tries   int     // made
	}{
		"always":         {[]error{syscall.EINVAL, syscall.EINVAL, syscall.EINVAL}, false, syscall.EINVAL, 3},
		"once":           {[]error{syscall.EINVAL}, false, nil, 2},
		"twice":          {[]error{syscall.EINVAL, syscall.EINVAL}, false, nil, 3},
		"a race":         {[]error{syscall.EINVAL, syscall.EINVAL, syscall.EINVAL}, true, ErrGone, 2},
		"something else": {[]error{syscall.EIO}, false, syscall.EIO, 1},
		"gone":           {[]error{syscall.ENOENT}, false, ErrGone, 1},
	} {
		for _, kind := range []string{"file", "directory"} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				t.Parallel()
				path := t.TempDir()
				dir, err := os.OpenRoot(path)
				if err != nil {
					t.Fatal(err)
				}
				defer dir.Close()
				lay := func() error {
					if kind == "directory" {
						return dir.Mkdir(kind, 0o700)
					}
					return dir.WriteFile(kind, nil, 0o600)
				}
				if err := lay(); err != nil {
					t.Fatal(err)
				}
				tries := 0
				f, _, err := Place{Dir: dir, Name: kind, Path: filepath.Join(path, kind)}.openBy(func(name string, flag int, mode fs.FileMode) (*os.File, error) {
					if tries++; tries > len(c.answers) {
						return dir.OpenFile(name, flag, mode)
					}
					if c.swapped {
						if err := errors.Join(dir.Rename(kind, fmt.Sprint(kind, tries)), lay()); err != nil {
							t.Error(err)
						}
					}
					return nil, &fs.PathError{Op: "openat", Path: name, Err: c.answers[tries-1]}
				})
				if f != nil {
					_ = f.Close()
				}
				if !errors.Is(err, c.want) || c.want != ErrGone && errors.Is(err, ErrGone) || tries != c.tries {
					t.Errorf("%v after %d opens, want %v after %d", err, tries, c.want, c.tries)
				}
			})
		}
	}
}

// A link takes the place of what was resolved before it is opened, and an os.Root follows one that stays below it: what
// it leads to is not searched under the name of the place.
func TestPlaceSwappedWithALink(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{true, false} {
		for _, kind := range []string{"file", "directory"} {
			path := t.TempDir()
			dir, err := os.OpenRoot(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			if err := errors.Join(dir.WriteFile("file", nil, 0o600), dir.WriteFile("denied file", nil, 0o600),
				dir.Mkdir("directory", 0o700), dir.Mkdir("denied directory", 0o700)); err != nil {
				t.Fatal(err)
			}
			swap := func() {
				if err := errors.Join(dir.Rename(kind, "away"), dir.Symlink("denied "+kind, kind)); err != nil {
					t.Skipf("this system lets no test make links: %v", err)
				}
			}
			if early {
				swap()
			}
			f, _, err := Place{Dir: dir, Name: kind, Path: filepath.Join(path, kind)}.openBy(func(name string, flag int, mode fs.FileMode) (*os.File, error) {
				if !early {
					swap()
				}
				return dir.OpenFile(name, flag, mode)
			})
			if f != nil || !errors.Is(err, ErrGone) {
				t.Errorf("%s, early %v: opened, %v", kind, early, err)
			}
		}
	}
}

// Where rules are about names, a file whose name stands for another one since it was opened is not reported: with one
// name left it may be one that had this name only for a moment.
func TestFileThatLostItsName(t *testing.T) {
	t.Parallel()
	skips := func(dev, ino uint64) bool { return ino == 9 }
	for name, c := range map[string]struct {
		skip        func(dev, ino uint64) bool
		opened, now stat
		gone        error
		want        bool
	}{
		"as it was":             {skips, stat{dev: 1, ino: 2, links: 1}, stat{dev: 1, ino: 2, links: 1}, nil, true},
		"nobody asks":           {nil, stat{dev: 1, ino: 9, links: 1}, stat{dev: 1, ino: 2, links: 1}, nil, true},
		"replaced":              {skips, stat{dev: 1, ino: 9, links: 1}, stat{dev: 1, ino: 2, links: 1}, nil, false},
		"gone":                  {skips, stat{dev: 1, ino: 9, links: 1}, stat{}, fs.ErrNotExist, false},
		"got a name":            {skips, stat{dev: 1, ino: 9, links: 1}, stat{dev: 1, ino: 9, links: 2}, nil, false},
		"lost one":              {skips, stat{dev: 1, ino: 9, links: 2}, stat{dev: 1, ino: 9, links: 1}, nil, false},
		"has others, all known": {skips, stat{dev: 1, ino: 2, links: 2}, stat{dev: 1, ino: 2, links: 2}, nil, true},
	} {
		g := &grep{run: &run{walk: &walk{scope: Scope{SkipID: c.skip}}}}
		if got := g.may("x", c.opened, func() (stat, error) { return c.now, c.gone }); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
