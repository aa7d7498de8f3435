package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// The names that a Directory uses beside <id>.json. All other files belong to other programs, and stay.
const (
	lastFile = ".codehand-last" // the last id that was given away, in digits
	tempFile = ".codehand-new"  // what is being written; one at a time, under the lock
	lockDir  = ".codehand-lock"
)

// listKey is what is locked: there is one list in a directory.
const listKey = "tasks"

// A Locker lets one in, over all sessions and processes that share a directory. It waits for a bounded time, or until
// ctx ends, and says then why not.
type Locker interface {
	Lock(ctx context.Context, keys ...string) (unlock func(), err error)
}

// A Directory is a Memory over files: one for each task, and one with the last id. A writer holds a lock. It writes a
// file under another name and then renames it, so readers see whole files. A writer that dies in the middle leaves a
// change half done: readers complete the links, and the last id is written before the first file that has it, so no id
// is given twice. A file that cannot be used is reported and stays. Links are not followed. It is safe for concurrent
// use. Errors: *DirectoryError, also around those of the Locker.
type Directory struct {
	path   string
	locker Locker
	fast   bool
	done   func() error // runs after each file that was changed, in tests that end there; nil in the server
}

// DirectoryOptions say how a Directory writes.
type DirectoryOptions struct {
	Locker Locker // of all who use the directory: its lock files are in Locks(path)
	Fast   bool   // do not wait for the disk: a power loss may take the last changes
}

// NewDirectory returns the list in the directory path, which is absolute and made at the first change. It must be on a
// local file system.
func NewDirectory(path string, o DirectoryOptions) *Directory {
	return &Directory{path: path, locker: o.Locker, fast: o.Fast}
}

// Locks is where the lock files of the list in the directory path are. It is made when it is needed.
func Locks(path string) string { return filepath.Join(path, lockDir) }

// Load reads all files, under the lock. A directory that is not there has no tasks.
func (d *Directory) Load(ctx context.Context) (Book, error) {
	root, err := d.open()
	if errors.Is(err, fs.ErrNotExist) {
		return Book{}, nil
	} else if err != nil {
		return Book{}, err
	}
	leave := func() { _ = root.Close() } // a handle of a directory holds no data
	// Where no process has ever changed anything there is none to wait for, and a reader makes no directory.
	if _, err := root.Lstat(lockDir); !errors.Is(err, fs.ErrNotExist) {
		if root, leave, err = d.lock(ctx, root); err != nil {
			return Book{}, err
		}
	}
	defer leave()
	s, err := read(ctx, root)
	if err != nil {
		return Book{}, err
	}
	return s.book, nil
}

// Change implements Memory. edit runs once. From the first file that is written on, ctx has no say.
func (d *Directory) Change(ctx context.Context, edit func(Book) (Book, error)) (Book, error) {
	if err := context.Cause(ctx); err != nil {
		return Book{}, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return Book{}, &DirectoryError{Step: "make", Err: bare(err)}
	}
	root, err := d.open()
	if err != nil {
		return Book{}, err
	}
	root, leave, err := d.lock(ctx, root)
	if err != nil {
		return Book{}, err
	}
	defer leave()
	s, err := read(ctx, root)
	if err != nil {
		return Book{}, err
	}
	next, err := edit(s.book)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = d.write(root, s, next)
	}
	return next, err
}

func (d *Directory) open() (*os.Root, error) {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, &DirectoryError{Step: "open", Err: bare(err)}
	}
	return root, nil
}

// lock keeps everybody else out until leave. It closes root and opens the directory again: during the wait another may
// have taken its place, and what is written to one without a name is lost.
func (d *Directory) lock(ctx context.Context, root *os.Root) (now *os.Root, leave func(), err error) {
	err = safeLocks(root)
	_ = root.Close() // a handle of a directory holds no data
	var unlock func()
	if err == nil {
		unlock, err = d.locker.Lock(ctx, listKey)
	}
	if err != nil {
		return nil, nil, &DirectoryError{Name: lockDir, Step: "lock", Err: bare(err)}
	}
	if now, err = d.open(); err != nil {
		unlock()
		return nil, nil, err
	}
	return now, func() { _ = now.Close(); unlock() }, nil
}

// safeLocks refuses what a Locker would follow or wait for: a link in place of the directory or in it, or a FIFO.
func safeLocks(root *os.Root) error {
	info, err := root.Lstat(lockDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the Locker makes it
	} else if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it is no directory; remove it")
	}
	dir, err := root.Open(lockDir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // only read
	entries, err := dir.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			return fmt.Errorf("%q in it is no regular file; remove it", e.Name())
		}
	}
	return nil
}

// write makes the files hold next. The last id comes first, so that it is never behind the files, of which a person may
// remove one. Deletions come before what they change in other tasks: a link to a task that is gone is taken for none,
// while a task that lost its links at one end gets them back.
func (d *Directory) write(root *os.Root, s stored, next Book) error {
	changed := false
	put := func(name string, text []byte) error {
		changed = true
		if err := d.replace(root, name, text); err != nil {
			return &DirectoryError{Name: name, Step: "write", Writing: true, Err: bare(err)}
		}
		return d.told()
	}
	switch {
	case s.lastDamaged != "" && next.Last > s.book.Last:
		// the free ids are unknown
		return &DirectoryError{Name: lastFile, Step: "read", Err: errors.New(s.lastDamaged)}
	case s.lastDamaged == "" && next.Last != s.last:
		if err := put(lastFile, []byte(strconv.Itoa(next.Last)+"\n")); err != nil {
			return err
		}
	}
	for id := range s.tasks {
		if next.index(id) >= 0 {
			continue
		}
		changed = true
		if err := root.Remove(fileOf(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &DirectoryError{Name: fileOf(id), Step: "remove", Writing: true, Err: bare(err)}
		}
		if err := d.told(); err != nil {
			return err
		}
	}
	for _, t := range next.Tasks {
		text, err := encode(t)
		if err == nil && string(text) == s.tasks[t.ID] {
			continue
		}
		if err == nil {
			err = put(fileOf(t.ID), text)
		}
		if err != nil {
			return err
		}
	}
	if changed && !d.fast {
		if err := syncDir(root); err != nil {
			return &DirectoryError{Step: "sync", Writing: true, Err: bare(err)}
		}
	}
	return nil
}

func (d *Directory) told() error {
	if d.done == nil {
		return nil
	}
	return d.done()
}

// replace writes a file anew: a reader sees the old or the new one, whole. The caller has the lock.
func (d *Directory) replace(root *os.Root, name string, text []byte) (err error) {
	// of a writer that died in the middle
	if err := root.Remove(tempFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(tempFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil && !d.fast {
		err = synced(f.Sync()) // before the rename, or the name could stand for an empty file after a power loss
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(tempFile, name)
	}
	if err != nil {
		_ = root.Remove(tempFile) // the next change removes it, too
	}
	return err
}

// syncDir writes the directory's entries to the disk, where the file system can.
func syncDir(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there; the file system's own journal orders the renames
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	err = synced(dir.Sync())
	_ = dir.Close() // nothing was written through it
	return err
}

// synced drops what a file system says that has no fsync.
func synced(err error) error {
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// bare drops what the model has no use for: the operation, and a path that may lie outside of its directories.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e
	}
	return err
}
