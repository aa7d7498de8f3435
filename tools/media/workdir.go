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

// A desk is what the programs for one PDF work on: a directory that they find empty, and a copy of the PDF without a
// name. Its directory is locked as long as its process lives, so that another can tell what a killed one left.
type desk struct {
	path string
	lock *os.File // the directory; nil: it is not there yet
	root *os.Root // likewise
	file *os.File // a copy of the PDF, which no other program changes meanwhile
}

// deskMark begins the name of every desk.
const deskMark = "pdf-"

// unguessable is a name for a desk, of 128 random bits.
func unguessable() string { return deskMark + rand.Text() }

// newDesk copies a PDF.
func (r *Reader) newDesk(src io.ReaderAt, size int64) (*desk, error) {
	temp := r.options.Temp
	if temp == "" {
		temp = os.TempDir()
	} else if err := os.MkdirAll(temp, 0o700); err != nil {
		return nil, err
	}
	d, err := openDesk(temp)
	if err != nil {
		return nil, err
	}
	if err := d.fill(src, size); err != nil {
		d.close()
		return nil, fmt.Errorf("copy a PDF to %s: %w", d.path, err)
	}
	return d, nil
}

// deskTries is how often a desk is made anew because a sweep took it before its lock. One process sweeps once.
const deskTries = 10

// openDesk makes a directory in temp and locks it.
func openDesk(temp string) (*desk, error) {
	for range deskTries {
		d := &desk{path: filepath.Join(temp, unguessable())}
		if err := os.Mkdir(d.path, 0o700); err != nil {
			return nil, err
		}
		got, err := d.take()
		if err != nil {
			d.close()
			return nil, err
		}
		if got {
			return d, nil
		}
		d.close()
	}
	return nil, fmt.Errorf("other processes removed %d directories in %s before they were used", deskTries, temp)
}

// take locks the directory and opens it. got: it still is the one that was made.
func (d *desk) take() (got bool, err error) {
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
func (d *desk) fill(src io.ReaderAt, size int64) (err error) {
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
func (d *desk) close() {
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

// sweepDesks removes the desks of processes that were killed. What cannot be removed stays for the next sweep.
func sweepDesks(temp string) {
	entries, _ := os.ReadDir(temp) // it may not be there yet
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), deskMark) {
			sweepDesk(filepath.Join(temp, e.Name()))
		}
	}
}

func sweepDesk(path string) {
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
