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
// ever that somebody else changes the file.
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
