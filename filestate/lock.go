package filestate

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
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockWait = 10 * time.Second // how long a writer waits for others; then the call is refused
	lockPoll = time.Millisecond // between looks at another process's lock; the mean, so that none is out of step for ever
)

// A Locker lets one writer at a file, over sessions and processes; keys are the canonical path and
// the device and inode. It waits at most 10 s, or until ctx ends: ErrLocked, or why ctx ended.
// server/state has one that also covers replicas which share a volume, by leases.
type Locker interface {
	Lock(ctx context.Context, keys ...string) (unlock func(), err error)
}

// NewLocker returns a Locker for all ledgers of a process. In the process, who asked first is served
// first. Between processes, each key is a lock file in dir, which is made when it is needed and holds
// no file when nobody writes; dir must be on a local file system, and the same for all processes.
// dir "": no lock files, so other processes are not kept out.
func NewLocker(dir string) Locker { return &hostLocker{dir: dir, lines: make(map[string]*line)} }

type hostLocker struct {
	dir string

	mu    sync.Mutex // covers lines and what they hold
	lines map[string]*line
}

// A line is the writers at one key: one that holds it, and those who wait, in order. It exists while
// somebody holds the key.
type line struct {
	waiting []chan struct{} // closed when it is this one's turn
}

func (h *hostLocker) Lock(ctx context.Context, keys ...string) (func(), error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, ErrLocked)
	defer cancel()
	var held []func()
	release := func() {
		for _, undo := range slices.Backward(held) {
			undo()
		}
	}
	// One order for all, so that two writers cannot wait for each other.
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		if err := h.enter(ctx, key); err != nil {
			release()
			return nil, err
		}
		held = append(held, func() { h.leave(key) })
		if h.dir == "" {
			continue
		}
		unlock, err := h.fence(ctx, key)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, unlock)
	}
	return sync.OnceFunc(release), nil
}

// enter waits for its turn at key within this process.
func (h *hostLocker) enter(ctx context.Context, key string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	q, busy := h.lines[key]
	if !busy {
		h.lines[key] = new(line)
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
		h.leave(key) // the turn came at the same moment
	}
	return context.Cause(ctx)
}

// leave gives key to the one who waits for it longest.
func (h *hostLocker) leave(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.lines[key]
	if len(q.waiting) == 0 {
		delete(h.lines, key)
		return
	}
	close(q.waiting[0])
	q.waiting = slices.Delete(q.waiting, 0, 1)
}

// fence keeps other processes out: it takes the lock file of key. Polling, because a system call that
// waits for a lock cannot be cancelled.
func (h *hostLocker) fence(ctx context.Context, key string) (unlock func(), err error) {
	sum := sha256.Sum256([]byte(key))
	path := filepath.Join(h.dir, hex.EncodeToString(sum[:16]))
	for {
		f, err := h.try(path)
		if err != nil {
			return nil, fmt.Errorf("lock file %s: %w", path, cause(err))
		}
		if f != nil {
			return func() { drop(f) }, nil
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

// try takes the lock file, or returns nil if another process holds it.
func (h *hostLocker) try(path string) (*flock.Flock, error) {
	f := flock.New(path, flock.SetPermissions(0o600))
	ok, err := f.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(h.dir, 0o700); err != nil {
			return nil, err
		}
		ok, err = f.TryLock()
	}
	if err == nil && ok {
		// Whoever held it before has removed it. A lock on a file without a name keeps nobody out.
		mine, mineErr := f.Stat()
		named, namedErr := os.Lstat(path)
		if mineErr == nil && namedErr == nil && os.SameFile(mine, named) {
			return f, nil
		}
	}
	_ = f.Close() // not taken, so there is nothing to lose
	return nil, err
}

// drop removes a lock file and lets it go. Inodes come and go with every change, and so would
// their lock files pile up.
func drop(f *flock.Flock) {
	if runtime.GOOS != "windows" {
		_ = os.Remove(f.Path()) // before it is let go: afterwards it may be another's. It may stay, too
		_ = f.Close()
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Path()) // refused while anybody has it open
}
