package lock

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// A lock file that is removed by its holder keeps no process out, however many wait for it.
func TestRemovedLockFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	var inside, together, turns atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for turns.Load() < 100 {
				f, err := tryLock(path)
				if err != nil {
					t.Error(err)
					return
				}
				if f == nil {
					continue
				}
				if inside.Add(1) > 1 {
					together.Add(1)
				}
				turns.Add(1)
				runtime.Gosched()
				inside.Add(-1)
				_ = os.Remove(path)
				_ = f.Close()
			}
		})
	}
	all.Wait()
	if n := together.Load(); n > 0 {
		t.Errorf("%d times two held the lock", n)
	}
}

func TestLockNames(t *testing.T) {
	t.Parallel()
	inodes := map[string]bool{}
	for i := range 1000 {
		name := lockName(inodePrefix + string(rune('a'+i)))
		if inodes[name] = true; isLockName(name) {
			t.Fatalf("%s would be removed when it is old", name)
		}
	}
	if len(inodes) != inodeFiles {
		t.Errorf("%d lock files for inodes, want %d", len(inodes), inodeFiles)
	}
	if a, b := lockName("/a"), lockName("/b"); a == b || !isLockName(a) {
		t.Errorf("two paths have the lock files %s and %s", a, b)
	}
}

// A link in the place of a lock file is not followed: nothing is made behind it.
func TestLockFileIsNoLink(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no flag for it on Windows")
	}
	dir := t.TempDir()
	path, target := filepath.Join(dir, "lock"), filepath.Join(dir, "target")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if f, err := tryLock(path); err == nil {
		t.Errorf("locked: %v", f)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the target was made")
	}
}
