package lock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"codehand/filestate/disk"
)

const (
	// inodePrefix begins the keys that stand for a device and inode. Every change makes a new inode, so
	// such keys share a fixed number of lock files.
	inodePrefix = "inode "
	inodeFiles  = 64

	// between looks at another process's lock; the mean, so that none is out of step for ever
	lockPoll = time.Millisecond
	lockKeep = 24 * time.Hour // age from which a lock file without a holder is removed
)

// Wait is how long a writer waits for others; then the call is refused.
const Wait = 10 * time.Second

// ErrLocked says that another writer did not let go in time.
var ErrLocked = errors.New("another writer holds the file")

// InodeKey is the key of an open file, whatever its names are.
func InodeKey(dev, ino uint64) string {
	return inodePrefix + strconv.FormatUint(dev, 10) + ":" + strconv.FormatUint(ino, 10)
}

// A Locker lets one writer at a file, over sessions and processes; keys are the canonical path and
// the device and inode. It waits at most 10 s, or until ctx ends: ErrLocked, or why ctx ended.
// server/state has one that also covers replicas which share a volume, by leases.
type Locker interface {
	Lock(ctx context.Context, keys ...string) (unlock func(), err error)
}

// New returns a Locker for all ledgers of a process. In the process, who asked first is served
// first. Between processes, each path is a lock file in dir, which is made when it is needed; dir must
// be on a local file system, and the same for all processes. The files are empty and stay for a day:
// to make one costs ten times as much as to lock it. dir "": no lock files, so other processes are not
// kept out.
func New(dir string) Locker { return &hostLocker{dir: dir, lines: make(map[string]*line)} }

type hostLocker struct {
	dir  string
	tidy sync.Once // removes old lock files before the first lock

	mu    sync.Mutex // covers lines and what they hold
	lines map[string]*line
}

// A line is the writers at one key: its holder, and those that wait, in order. It exists while the key has a holder.
type line struct {
	waiting []chan struct{} // closed when it is this one's turn
}

func (h *hostLocker) Lock(ctx context.Context, keys ...string) (func(), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Wait, ErrLocked)
	defer cancel()
	if h.dir != "" {
		h.tidy.Do(h.removeOld)
	}
	names := make([]string, len(keys))
	keyOf := make(map[string]string)
	for i, key := range keys {
		names[i] = lockName(key)
		keyOf[names[i]] = key
	}
	var held []func()
	release := func() {
		for _, undo := range slices.Backward(held) {
			undo()
		}
	}
	// One order for all, so that two writers cannot wait for each other.
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := h.enter(ctx, name); err != nil {
			release()
			return nil, &KeyError{keyOf[name], err}
		}
		held = append(held, func() { h.leave(name) })
		if h.dir == "" {
			continue
		}
		f, err := h.fence(ctx, name)
		if err != nil {
			release()
			return nil, &KeyError{keyOf[name], err}
		}
		held = append(held, func() { _ = f.Close() }) // closing is what lets go; the file is empty
	}
	return sync.OnceFunc(release), nil
}

// A KeyError says which key could not be locked. Its text is that of the cause.
type KeyError struct {
	Key string
	err error
}

// Error is the text of the cause.
func (e *KeyError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.err }

// lockName names the line and the lock file of a key.
func lockName(key string) string {
	sum := sha256.Sum256([]byte(key))
	if strings.HasPrefix(key, inodePrefix) {
		return fmt.Sprintf("inode-%02d", sum[0]%inodeFiles)
	}
	return hex.EncodeToString(sum[:16])
}

// enter waits for its turn at a name within this process.
func (h *hostLocker) enter(ctx context.Context, name string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	q, busy := h.lines[name]
	if !busy {
		h.lines[name] = new(line)
		h.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.waiting = append(q.waiting, turn)
	h.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	i := slices.Index(q.waiting, turn)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	h.mu.Unlock()
	if i < 0 {
		h.leave(name) // the turn came at the same moment
	}
	return context.Cause(ctx)
}

// leave gives name to the one who waits for it longest.
func (h *hostLocker) leave(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.lines[name]
	if len(q.waiting) == 0 {
		delete(h.lines, name)
		return
	}
	close(q.waiting[0])
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

// fence keeps other processes out: it takes the lock file of name. Polling, because a system call that
// waits for a lock cannot be cancelled.
func (h *hostLocker) fence(ctx context.Context, name string) (*flock.Flock, error) {
	path := filepath.Join(h.dir, name)
	for {
		f, err := tryLock(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.MkdirAll(h.dir, 0o700); err == nil {
				f, err = tryLock(path)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("lock file %s: %w", path, disk.Cause(err))
		}
		if f != nil {
			return f, nil
		}
		timer := time.NewTimer(lockPoll/2 + rand.N(lockPoll))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// tryLock takes a lock file, or returns nil if another process holds it.
func tryLock(path string) (*flock.Flock, error) {
	f := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(lockFlags))
	ok, err := f.TryLock()
	if err == nil && ok {
		// It may have been removed since it was opened. A lock on a file without a name keeps no process out.
		mine, mineErr := f.Stat()
		named, namedErr := os.Lstat(path)
		if mineErr == nil && namedErr == nil && os.SameFile(mine, named) {
			return f, nil
		}
	}
	_ = f.Close() // not taken, so there is nothing to lose
	return nil, err
}

// removeOld removes the lock files of paths that no process has changed for a day, or that were made that long ago: the
// next writer makes a new one. It never fails; what stays does no harm.
func (h *hostLocker) removeOld() {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < lockKeep || !isLockName(e.Name()) {
			continue
		}
		path := filepath.Join(h.dir, e.Name())
		f, err := tryLock(path)
		if err != nil || f == nil {
			continue
		}
		if runtime.GOOS == "windows" {
			_ = f.Close()
			_ = os.Remove(path) // Windows refuses this while a process has it open
			continue
		}
		_ = os.Remove(path) // before it is let go: afterwards it may be another's
		_ = f.Close()
	}
}

// isLockName says whether a file may be the lock file of a path.
func isLockName(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 32
}
