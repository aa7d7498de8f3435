package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// An area is one directory that may be touched. Its path is canonical: it holds no links as of start.
type area struct {
	path     string
	spelled  string // as configured, absolute and clean; may lead through links
	readOnly bool
	file     bool     // it is one file, whose directory is no area
	within   *area    // of a part of a root: the root; it holds the handle
	rest     []string // of path, below that of within

	mu     sync.RWMutex // covers what follows
	dir    *os.Root     // of a root; kept open so that its inode cannot be given to another directory
	handle *os.File     // of dir again, for the kernel's short way; nil where there is none
	info   os.FileInfo  // of dir
	closed bool
}

// openRoot opens a root for good.
func openRoot(path string) (*area, error) {
	if path == "" {
		return nil, errors.New("path is empty")
	}
	spelled, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(spelled)
	if err != nil {
		return nil, err
	}
	if reason := refusedRoot(real); reason != "" {
		return nil, errors.New(reason)
	}
	a := &area{path: real, spelled: spelled}
	if err := a.reopen(); err != nil {
		return nil, err
	}
	return a, nil
}

// refusedRoot says why a directory is never a root; "": it may be one.
func refusedRoot(real string) string {
	if filepath.Dir(real) == real {
		return "the whole file system is never a root"
	}
	if onSystem(real) {
		return "the file systems of the kernel are never a root"
	}
	for _, system := range []string{"/proc", "/sys", "/dev", "/etc"} {
		if rel, err := filepath.Rel(system, real); err == nil && filepath.IsLocal(rel) {
			return "nothing in " + system + " is ever a root"
		}
	}
	return ""
}

// readableArea makes an area that need not exist yet. It holds no handle, so it need not be closed.
func readableArea(dir string) *area {
	spelled := filepath.Clean(dir)
	return &area{path: realAsFarAsItGoes(spelled), spelled: spelled, readOnly: true}
}

// fileArea makes an area of one file, which need not exist yet. Like a readable one it holds no handle.
func fileArea(file string) *area {
	spelled := filepath.Clean(file)
	dir, name := filepath.Split(spelled)
	return &area{path: filepath.Join(realAsFarAsItGoes(filepath.Clean(dir)), name), spelled: spelled, file: true}
}

// realAsFarAsItGoes resolves the links in the part of path that exists.
func realAsFarAsItGoes(path string) string {
	var missing []string
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil { // a look at one name: to resolve asks for each on the way
			if real, err := filepath.EvalSymlinks(at); err == nil {
				slices.Reverse(missing)
				return filepath.Join(append([]string{real}, missing...)...)
			}
		}
		if at == filepath.Dir(at) {
			return path
		}
		missing = append(missing, filepath.Base(at))
	}
}

// gone says that err means: there is nothing at that path.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// failed wraps a system's error so that it names the whole path and not only the last component, which is all that
// os.Root saw of it.
func failed(path string, err error) error {
	var p *fs.PathError
	switch {
	case Swapped(err):
		err = ErrChanging
	case errors.As(err, &p):
		err = p.Err
	}
	return fmt.Errorf("open %s: %w", path, err)
}
