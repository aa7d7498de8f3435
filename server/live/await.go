package live

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// openName is the file that a page touches each time it looks for processes, as long as it is open.
const openName = "open"

// awaitTime is how long a process waits for a page that is open: for its next look, and for what the process answers.
const awaitTime = scanEvery + lookTime

// markOpen notes in dir that a page is open.
func markOpen(dir string) {
	_ = os.Mkdir(dir, 0o700) // no process has begun yet
	path, now := filepath.Join(dir, openName), time.Now()
	if os.Chtimes(path, now, now) != nil {
		_ = os.WriteFile(path, nil, 0o600) // without it a first call is not asked about, and can be made again
	}
}

// unmarkOpen ends that.
func unmarkOpen(dir string) { _ = os.Remove(filepath.Join(dir, openName)) }

// Await waits until a page that is open has seen this process, as seen says, so that already the first call of the
// process can wait there. Without such a page it returns at once.
func Await(ctx context.Context, stateDir string, seen func() bool) {
	info, err := os.Stat(filepath.Join(stateDir, socketsDir, openName))
	if err != nil || time.Since(info.ModTime()).Abs() > awaitTime {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	for !seen() && pause(ctx, 10*time.Millisecond) {
	}
}
