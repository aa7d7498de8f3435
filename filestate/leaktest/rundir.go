package leaktest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// lockSuffix ends the name of the lock file beside each run directory.
const lockSuffix = ".lock"

// A runDir is the temporary directory of one test process. Its lock is held for the life of the process.
type runDir struct {
	dir   string // absolute
	temp  string // the temporary directory before
	lock  *flock.Flock
	began uint64 // when the test process started, in ticks since boot; 0 where that is not known
}

// beginRun removes what dead runs left, makes a run directory and makes it the temporary directory of this process.
func beginRun() (*runDir, error) {
	temp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return nil, err
	}
	parent := parentDir(temp)
	for range 100 { // a run that ends may remove the parent just now
		var run *runDir
		if run, err = makeRun(parent); err == nil {
			run.temp = temp
			run.began, _ = startOf(os.Getpid())
			sweep(parent)
			return run, run.enter()
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errTaken) {
			break
		}
	}
	return nil, fmt.Errorf("no directory for this run: %w", err)
}

// errTaken says that another process has removed the lock file that this one just locked.
var errTaken = errors.New("the lock file was removed by another run")

// makeRun makes parent if need be, and in it a locked run directory. The lock comes first and goes last, so a directory
// without a lock file has no owner.
func makeRun(parent string) (*runDir, error) {
	if err := os.Mkdir(parent, 0o777); err == nil {
		// Users of one machine share it as they share its temporary directory.
		if err := os.Chmod(parent, 0o777|fs.ModeSticky); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if info, err := os.Lstat(parent); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no directory", parent)
	}
	// Names are short: addresses of Unix sockets below them have about a hundred bytes.
	name := filepath.Join(parent, strconv.Itoa(os.Getpid()))
	for range 26 {
		lock, err := tryLock(name + lockSuffix)
		if err != nil {
			return nil, err
		}
		if lock == nil { // a process of that id in another container
			name += "x"
			continue
		}
		removeAll(name)
		// Tests let other users enter.
		if err = os.Mkdir(name, 0o755); err != nil {
			_ = lock.Unlock()
			return nil, err
		}
		return &runDir{dir: name, lock: lock}, nil
	}
	return nil, fmt.Errorf("all names are taken: %s", name)
}

// tryLock locks a lock file, which it makes if need be. nil: another process holds it.
func tryLock(path string) (*flock.Flock, error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	switch {
	case errors.Is(err, fs.ErrPermission): // another user's
		return nil, nil
	case err != nil || !locked:
		return nil, err
	}
	held, err := lock.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Lstat(path); err == nil && !os.SameFile(held, there) {
			err = errTaken
		}
	}
	if err != nil {
		_ = lock.Unlock()
		return nil, err
	}
	return lock, nil
}

// sweep removes the run directories in parent whose processes are dead.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		// A directory without a lock file has no owner. It gets a lock file for a moment.
		discard(filepath.Join(parent, strings.TrimSuffix(e.Name(), lockSuffix)))
	}
}

// discard removes a run directory and its lock file, if its process is dead.
func discard(dir string) {
	if lock, err := tryLock(dir + lockSuffix); err == nil && lock != nil {
		removeAll(dir)
		_ = os.Remove(dir + lockSuffix)
		_ = lock.Unlock()
	}
}

// enter makes the run directory the temporary directory of this process and of all that it starts.
func (r *runDir) enter() error {
	for _, name := range []string{"TMPDIR", "TMP", "TEMP", runMark} {
		if err := os.Setenv(name, r.dir); err != nil {
			return err
		}
	}
	if os.Getenv("GOTMPDIR") != "" { // testing puts its directories there
		return os.Setenv("GOTMPDIR", r.dir)
	}
	return nil
}

// entries are the names in the run directory.
func (r *runDir) entries() map[string]bool {
	names := map[string]bool{}
	list, err := os.ReadDir(r.dir)
	if err != nil {
		return names
	}
	for _, e := range list {
		names[e.Name()] = true
	}
	return names
}

// left describes what the tests left in the run directory; before is what was there when they began. An empty directory
// is nothing.
func (r *runDir) left(before map[string]bool) (left []string) {
	for name := range r.entries() {
		path := filepath.Join(r.dir, name)
		if inside, err := os.ReadDir(path); !before[name] && name != keptName && (err != nil || len(inside) > 0) {
			left = append(left, path+" is left: remove what the tests make")
		}
	}
	return left
}

// remove removes the run directory, lets go of its lock, and removes the directory of all runs if it was the last one.
func (r *runDir) remove() {
	removeAll(r.dir)
	_ = os.Remove(r.dir + lockSuffix) // while it is locked, where the system can
	_ = r.lock.Unlock()
	_ = os.Remove(r.dir + lockSuffix)
	_ = os.Remove(filepath.Dir(r.dir)) // fails while there are others
}

// removeAll removes a directory, also what tests made unwritable or mounted in it.
func removeAll(dir string) {
	unmount(dir) // first: a mount may hold a person's files
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// processes are what this test process started and what that started, the reaper apart.
func (r *runDir) processes() []process {
	return ofRun(os.Getpid(), r.dir, r.began, known.all(), reaperPID())
}
