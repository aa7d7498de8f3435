package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file system that answers EINVAL for its own reasons was taken for a link that came and went, and the caller was told
// for ever that another program changes the file.
func TestRefusedBySystem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []error // of the opens, in order; nil, and what follows: the real one
		swapped bool    // each open finds a new file under the name
		want    error   // nil: it is opened
		tries   int     // made
	}{
		"always":            {[]error{syscall.EINVAL, syscall.EINVAL, syscall.EINVAL}, false, syscall.EINVAL, 3},
		"once":              {[]error{syscall.EINVAL}, false, nil, 2},
		"twice":             {[]error{syscall.EINVAL, syscall.EINVAL}, false, nil, 3},
		"a race":            {[]error{syscall.EINVAL, syscall.EINVAL, syscall.EINVAL}, true, ErrMoved, 3},
		"something else":    {[]error{syscall.EIO}, false, syscall.EIO, 1},
		"EINVAL, then else": {[]error{syscall.EINVAL, syscall.EIO}, false, syscall.EIO, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			dir, err := os.OpenRoot(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			if err := errors.Join(dir.WriteFile("file", nil, 0o600), dir.Mkdir("sub", 0o700)); err != nil {
				t.Fatal(err)
			}
			tries := 0
			answer := func(name string, again func() error) error {
				tries++
				if tries > len(c.answers) {
					return nil
				}
				if c.swapped {
					if err := errors.Join(dir.Rename(name, fmt.Sprint(name, "-before", tries)), again()); err != nil {
						t.Error(err)
					}
				}
				return &fs.PathError{Op: "openat", Path: name, Err: c.answers[tries-1]}
			}
			f, _, err := openRegular(dir, "file", filepath.Join(path, "file"), func(name string, flag int, mode fs.FileMode) (*os.File, error) {
				if err := answer("file", func() error { return dir.WriteFile(name, nil, 0o600) }); err != nil {
					return nil, err
				}
				return dir.OpenFile(name, flag, mode)
			})
			if f != nil {
				_ = f.Close()
			}
			if !errors.Is(err, c.want) || tries != c.tries {
				t.Errorf("a file: %v after %d opens, want %v after %d", err, tries, c.want, c.tries)
			}
			tries = 0
			sub, err := child(dir, "sub", func(name string) (*os.Root, error) {
				if err := answer("sub", func() error { return dir.Mkdir("sub", 0o700) }); err != nil {
					return nil, err
				}
				return dir.OpenRoot(name)
			})
			if sub != nil {
				_ = sub.Close()
			}
			if !errors.Is(err, c.want) || tries != c.tries && !c.swapped { // a directory that was swapped is not tried again
				t.Errorf("a directory: %v after %d opens, want %v after %d", err, tries, c.want, c.tries)
			}
		})
	}
}

// A name was that of a file with another name, and was taken away again while it was opened: with one name left, the
// file would pass for one that only ever had this name.
func TestOpenOfANameThatComesAndGoes(t *testing.T) {
	t.Parallel()
	for name, flips := range map[string]int{"once": 1, "all the time": openTries} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := t.TempDir()
			dir, err := os.OpenRoot(path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			if err := errors.Join(dir.WriteFile("plain", []byte("plain"), 0o600), dir.WriteFile("denied", []byte("denied"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := dir.Link("denied", "file"); err != nil {
				t.Skipf("no hard links here: %v", err)
			}
			if info, err := dir.Stat("file"); err != nil || StampOf(info).Nlink == 0 {
				t.Skip("this system does not say how many names a file has")
			}
			f, stamp, err := openRegular(dir, "file", path, func(name string, flag int, mode fs.FileMode) (*os.File, error) {
				f, err := dir.OpenFile(name, flag, mode)
				if flips--; flips >= 0 {
					err = errors.Join(err, dir.Remove("file"), dir.Link("plain", "file"))
				}
				if flips > 0 { // it will have come back when the name is looked at again
					err = errors.Join(err, dir.Remove("file"), dir.Link("denied", "file"))
				}
				return f, err
			})
			if f == nil {
				if name == "once" || !errors.Is(err, ErrMoved) {
					t.Error(err)
				}
				return
			}
			defer f.Close()
			b := make([]byte, 10)
			n, _ := f.Read(b)
			if string(b[:n]) != "plain" || stamp.Nlink != 2 {
				t.Errorf("opened %q, stamp %+v", b[:n], stamp)
			}
		})
	}
}
