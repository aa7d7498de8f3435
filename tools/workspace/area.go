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
	file     bool // it is one file, whose directory is no area

	mu     sync.Mutex  // covers what follows
	dir    *os.Root    // of a root; kept open so that its inode cannot be given to another directory
	info   os.FileInfo // of dir
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
	for _, system := range []string{"/proc", "/sys", "/dev", "/etc"} {
		if rel, err := filepath.Rel(system, real); err == nil && filepath.IsLocal(rel) {
			return "nothing in " + system + " is ever a root"
		}
	}
	return ""
}

// readableArea makes an area that need not exist yet. It holds no handle, so nobody has to close it.
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
		if real, err := filepath.EvalSymlinks(at); err == nil {
			slices.Reverse(missing)
			return filepath.Join(append([]string{real}, missing...)...)
		}
		if at == filepath.Dir(at) {
			return path
		}
		missing = append(missing, filepath.Base(at))
	}
}

// open returns a handle of the caller's own on the area. The directory may have been deleted and made again since the
// last call (`rm -rf repo && git clone`), and a handle outlives its directory; so the path is compared first. Errors:
// os.ErrClosed, fs.ErrNotExist, errRedirected, or what the system said.
//
// For a file it is the handle of the directory that it is in.
func (a *area) open() (*os.Root, error) {
	switch {
	case a.file:
		return openExactly(filepath.Dir(a.path))
	case a.readOnly:
		return openExactly(a.path)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, os.ErrClosed
	}
	now, err := os.Lstat(a.path)
	if err != nil {
		return nil, err
	}
	if !now.IsDir() || !os.SameFile(now, a.info) {
		if err := a.reopen(); err != nil {
			return nil, err
		}
	}
	return a.dir.OpenRoot(".")
}

// reopen replaces the handle by one on what is at the path now. The caller holds mu, or is the only user.
func (a *area) reopen() error {
	dir, err := openExactly(a.path)
	if err != nil {
		return err
	}
	info, err := dir.Stat(".")
	if err != nil {
		_ = dir.Close() // the Stat error is the one to tell
		return err
	}
	if a.dir != nil {
		_ = a.dir.Close() // of a directory that is gone
	}
	a.dir, a.info = dir, info
	return nil
}

func (a *area) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.dir == nil {
		return nil
	}
	err := a.dir.Close()
	a.dir = nil
	return err
}

// errRedirected says that a path which held no links now leads through one.
var errRedirected = errors.New("is now a link")

// openExactly opens the directory at path and makes sure that no link was followed on the way. It cannot walk down
// by handles from `/`: directories above a root are often searchable but not readable (`/home` with mode 0711).
func openExactly(path string) (*os.Root, error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if err := sameWithoutLinks(path, dir); err != nil {
		_ = dir.Close() // only looked at
		return nil, err
	}
	return dir, nil
}

func sameWithoutLinks(path string, dir *os.Root) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if real != path {
		return errRedirected
	}
	atPath, err := os.Lstat(path)
	if err != nil {
		return err
	}
	opened, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if !atPath.IsDir() || !os.SameFile(atPath, opened) {
		return errRedirected
	}
	return nil
}

// gone says that err means: there is nothing at that path.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// failed wraps a system's error so that it names the whole path and not only the last component, which is all that
// os.Root saw of it.
func failed(path string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("open %s: %w", path, err)
}
