package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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
	case a.within != nil:
		return a.within.part(a.rest)
	}
	var dir *os.Root
	err := a.fresh(func() (err error) {
		dir, err = a.dir.OpenRoot(".")
		return err
	})
	return dir, err
}

// part opens a directory below a root, and follows no link on the way to it.
func (a *area) part(rest []string) (*os.Root, error) {
	at, err := a.open()
	for _, name := range rest {
		if err != nil {
			break
		}
		above := at
		at, err = openPlain(above, name)
		_ = above.Close() // only looked at
	}
	return at, err
}

// openPlain opens the directory name of dir, which must be no link: errRedirected.
func openPlain(dir *os.Root, name string) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, errRedirected
	}
	sub, err := openDir(dir, name)
	if err != nil {
		return nil, err
	}
	if opened, err := sub.Stat("."); err != nil || !os.SameFile(opened, info) {
		return nil, errors.Join(errRedirected, err, sub.Close())
	}
	return sub, nil
}

// fresh calls use while the handle is that of the directory which is at the path now. use must not keep the handle, and
// its error is returned.
func (a *area) fresh(use func() error) error {
	a.mu.RLock()
	if ok, err := a.current(); ok || err != nil {
		defer a.mu.RUnlock()
		if err != nil {
			return err
		}
		return use()
	}
	a.mu.RUnlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	ok, err := a.current() // another goroutine may have opened it meanwhile, or closed it
	if err == nil && !ok {
		err = a.reopen()
	}
	if err != nil {
		return err
	}
	return use()
}

// current says whether the handle is that of the directory at the path. The caller holds mu.
func (a *area) current() (bool, error) {
	if a.closed {
		return false, os.ErrClosed
	}
	now, err := os.Lstat(a.path)
	if err != nil {
		return false, err
	}
	return now.IsDir() && os.SameFile(now, a.info), nil
}

// foreign says whether name in dir, which info describes, lies in a file system of the kernel that is mounted below the
// root. It costs nothing where nothing is mounted. Directories outside the roots are ours or the operator's.
func (a *area) foreign(dir *os.Root, name string, info os.FileInfo) bool {
	if a.within != nil {
		return a.within.foreign(dir, name, info)
	}
	if a.readOnly || a.file {
		return false
	}
	a.mu.RLock()
	base := a.info
	a.mu.RUnlock()
	return systemBelow(dir, name, info, base)
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
	_ = a.release() // of a directory that is gone
	a.dir, a.handle, a.info = dir, handleOf(dir), info
	return nil
}

// release closes the handles. The caller holds mu, or is the only user.
func (a *area) release() error {
	var err error
	if a.dir != nil {
		err = a.dir.Close()
	}
	if a.handle != nil {
		err = errors.Join(err, a.handle.Close())
	}
	a.dir, a.handle = nil, nil
	return err
}

func (a *area) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.release()
}

// errRedirected says that a path which held no links now leads through one.
var errRedirected = errors.New("is now a link")

// openExactly opens the directory at path and makes sure that no link was followed on the way. It cannot walk down
// by handles from `/`: directories above a root are often searchable but not readable (`/home` with mode 0711).
func openExactly(path string) (*os.Root, error) {
	dir, err := os.OpenRoot(path + string(filepath.Separator) + ".") // see openDir
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

// openDir opens the directory name of dir. Root.OpenRoot opens whatever stands there before it looks, and waits for
// ever for the other end of a FIFO; on the way to something else, it asks for a directory.
func openDir(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/.") }
