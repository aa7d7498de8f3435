package git

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// ErrLocked means that another git, or one that was killed, holds the lock of a configuration file.
var ErrLocked = errors.New("config.lock exists")

// How long UpdateConfig waits for another git: each holds the lock for milliseconds.
const (
	lockWait = 2 * time.Second
	lockStep = 10 * time.Millisecond
)

// UpdateConfig replaces the configuration file name in dir by what update makes of its content, as git does: with a
// lock beside it that keeps other gits from writing meanwhile, and by renaming. The file keeps its mode. Errors: those
// of update, ErrLocked, or what the system says.
//
// inPlace writes into the file that is there instead: where another file is renamed onto it, the kernel takes away what
// is mounted over it for commands that run. A reader can then see a part of both for a moment, and a crash leaves the
// whole new content in the lock.
func UpdateConfig(dir *os.Root, name string, inPlace bool, update func(now []byte) ([]byte, error)) (err error) {
	lock, err := lockConfig(dir, name+".lock")
	if err != nil {
		return err
	}
	defer func() {
		_ = lock.Close() // after a write: it was closed
		if err != nil {
			_ = dir.Remove(name + ".lock")
		}
	}()
	now, err := ReadSmallIn(dir, name, maxConfig)
	if err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	next, err := update(now)
	if err != nil {
		return err
	}
	if string(next) == string(now) {
		return dir.Remove(name + ".lock")
	}
	if _, err = lock.Write(next); err != nil {
		return err
	}
	if err = lock.Chmod(info.Mode().Perm()); err != nil {
		return err
	}
	if err = lock.Close(); err != nil {
		return err
	}
	if !inPlace || !info.Mode().IsRegular() {
		return dir.Rename(name+".lock", name)
	}
	if err = overwrite(dir, name, next); err != nil {
		return err
	}
	return dir.Remove(name + ".lock")
}

// overwrite gives a file new content without another inode.
func overwrite(dir *os.Root, name string, content []byte) error {
	f, err := dir.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Truncate(int64(len(content)))
	}
	return errors.Join(err, f.Close())
}

func lockConfig(dir *os.Root, name string) (*os.File, error) {
	for until := time.Now().Add(lockWait); ; time.Sleep(lockStep) {
		lock, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return lock, err
		}
		if time.Now().After(until) {
			return nil, ErrLocked
		}
	}
}
