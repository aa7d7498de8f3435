package server

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// keepFor is how long what a session left on disk is kept after it was last written: kept results and job logs, which
// a client that resumes a conversation may still name.
const keepFor = 30 * 24 * time.Hour

// sessionsDir is where sessions keep what is too large for the Store, below the state directory: a directory for each
// principal, and in it one for each session.
const sessionsDir = "sessions"

// sweepSessions removes the directories of sessions that nobody has written to for keepFor. Several processes may do
// so at the same time.
func sweepSessions(dir string, now time.Time, log *slog.Logger) {
	principals, err := os.ReadDir(dir)
	if err != nil {
		return // there were no sessions yet
	}
	for _, p := range principals {
		sweepPrincipal(filepath.Join(dir, p.Name()), now, log)
	}
}

func sweepPrincipal(dir string, now time.Time, log *slog.Logger) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it holds no sessions
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if last, err := lastWritten(path); err != nil || now.Sub(last) < keepFor {
			continue // what cannot be looked at is not removed
		}
		if err := os.RemoveAll(path); err != nil {
			log.Warn("an old session cannot be removed", "path", path, "err", err)
		}
	}
}

// lastWritten is the newest time of anything below path.
func lastWritten(path string) (newest time.Time, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if t := info.ModTime(); t.After(newest) {
			newest = t
		}
		return nil
	})
	return newest, err
}
