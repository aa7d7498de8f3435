package media

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A workdir is what the programs for one PDF get: an empty directory to work in, and an open copy of the PDF without a
// name. Its process locks the directory for as long as it lives, so other processes can tell what a killed one left.
type workdir struct {
	path string
	lock *os.File // the directory; nil: it is not there yet
	root *os.Root // likewise
	file *os.File // a copy of the PDF, which no other program changes meanwhile
}

// workdirPrefix begins the name of every workdir.
const workdirPrefix = "pdf-"

// unguessable is a name for a workdir, of 128 random bits.
func unguessable() string { return workdirPrefix + rand.Text() }

// newWorkdir copies a PDF.
func (r *Reader) newWorkdir(src io.ReaderAt, size int64) (*workdir, error) {
	temp := r.options.Temp
	if temp == "" {
		temp = os.TempDir()
	} else if err := os.MkdirAll(temp, 0o700); err != nil {
		return nil, err
	}
	d, err := openWorkdir(temp)
	if err != nil {
		return nil, err
	}
	if err := d.fill(src, size); err != nil {
		d.close()
		return nil, fmt.Errorf("copy a PDF to %s: %w", d.path, err)
	}
	return d, nil
}

// workdirTries is how many directories openWorkdir makes at most: a sweep of another process may remove one before
// it is locked. One process sweeps once.
const workdirTries = 10

// openWorkdir makes a directory in temp and locks it.
func openWorkdir(temp string) (*workdir, error) {
	for range workdirTries {
		d := &workdir{path: filepath.Join(temp, unguessable())}
		if err := os.Mkdir(d.path, 0o700); err != nil {
			return nil, err
		}
		got, err := d.lockNew()
		if err != nil {
			d.close()
			return nil, err
		}
		if got {
			return d, nil
		}
		d.close()
	}
	return nil, fmt.Errorf("other processes removed %d directories in %s before they were used", workdirTries, temp)
}

// lockNew locks the directory and opens it. got: it still is the one that was made.
func (d *workdir) lockNew() (got bool, err error) {
	if d.lock, err = os.Open(d.path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// Where there are no locks, nothing is swept, either.
	if tryLock(d.lock) == lockTaken {
		return false, nil
	}
	if d.root, err = os.OpenRoot(d.path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// fill puts the copy into the directory and takes its name away.
func (d *workdir) fill(src io.ReaderAt, size int64) (err error) {
	const name = "pdf"
	if d.file, err = d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if _, err = io.Copy(d.file, io.NewSectionReader(src, 0, size)); err != nil {
		return err
	}
	return d.root.Remove(name)
}

// close forgets the copy. Nothing depends on it any more. The lock goes last.
func (d *workdir) close() {
	if d.file != nil {
		_ = d.file.Close()
	}
	if d.root != nil {
		_ = d.root.Close()
	}
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

// sweepWorkdirs removes the workdirs of processes that were killed. What cannot be removed stays for the next sweep.
func sweepWorkdirs(temp string) {
	entries, _ := os.ReadDir(temp) // it may not be there yet
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), workdirPrefix) {
			sweepWorkdir(filepath.Join(temp, e.Name()))
		}
	}
}

func sweepWorkdir(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }() // only locked
	if tryLock(dir) == lockGot {
		_ = os.RemoveAll(path)
	}
}

// What became of an attempt to lock a directory.
type lockState int

const (
	lockNone  lockState = iota // there are no locks on this system or disk
	lockTaken                  // a process that lives has it
	lockGot                    // until the file is closed
)
