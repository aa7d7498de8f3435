package state

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

// An InUseError says that another process has the data directory. Nothing in it is broken.
type InUseError struct {
	Dir string
	PID int // 0: not known
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("data dir %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("data dir %s is in use by pid %d", e.Dir, e.PID)
}

// Hint says what a person can do about it.
func (e *InUseError) Hint() string {
	stop := "stop it"
	if e.PID > 0 {
		stop += fmt.Sprintf(" (kill %d)", e.PID)
	}
	return "another codehand serve runs there: connect your clients to it, or " + stop +
		", or give this one its own directory and address: --http-data-dir DIR --listen 127.0.0.1:0"
}

// lockDir keeps all other processes, and other Stores of this one, out of a data directory until release is called or
// the process ends. A file beside the lock names its holder: on Windows other processes cannot read a locked file.
func lockDir(dir string) (release func() error, err error) {
	path, owner := filepath.Join(dir, "lock"), filepath.Join(dir, "lock.pid")
	l := flock.New(path, flock.SetFlag(lockFlags), flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock data dir %s: %w", dir, err)
	}
	if !got {
		return nil, &InUseError{Dir: dir, PID: readPID(owner)}
	}
	// By rename, so that no process reads half a number or writes through a link.
	err = os.Remove(owner + ".new")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = writeNew(owner+".new", strconv.Itoa(os.Getpid())+"\n")
	}
	if err == nil {
		err = os.Rename(owner+".new", owner)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data dir %s: %w", dir, err), l.Unlock())
	}
	return func() error {
		_ = os.Remove(owner) // it only names us, and the lock is what counts
		return l.Unlock()
	}, nil
}

func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func readPID(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// InUse says whether a process has the embedded Store of a data directory, and which; 0: it is not known. What cannot
// be known counts as in use. Nothing is made there.
func InUse(dir string) (pid int, used bool) {
	path := filepath.Join(dir, "lock")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	l := flock.New(path, flock.SetFlag(lockFlags), flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if got {
		err = l.Unlock()
	}
	if err == nil && got {
		return 0, false
	}
	return readPID(filepath.Join(dir, "lock.pid")), true
}
