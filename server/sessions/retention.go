package sessions

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/config"
	"codehand/server/state"
)

const (
	// keptDays is how long what a session left on disk is kept if nobody says (results.keep_days): kept results and job
	// logs, which a client that resumes a conversation may still name.
	keptDays = 30
	// keptBytes is how much of it one principal may have.
	keptBytes = 1 << 30
	// keptJobs is how long no job loses its log for want of room: a finished one can be read for a day. None runs as
	// long.
	keptJobs = 24 * time.Hour
	// sweepPause is the time between two sweeps that calls cause, and sweepAll between two over all principals.
	sweepPause = time.Minute
	sweepAll   = time.Hour
)

// Dir is where sessions keep what is too large for the Store, below the state directory: a directory for each
// principal, and in it one for each session, with the directories jobs and tool-results.
const Dir = "sessions"

// A Retention removes what was kept too long, and the oldest of what is too much. Sweeps run beside the calls, one at a
// time; several processes may sweep the same directory. It is safe for concurrent use.
type Retention struct {
	dir    string
	age    time.Duration
	most   int64 // bytes of one principal
	now    func() time.Time
	log    *slog.Logger
	sweeps sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running bool
	last    time.Time       // begin of the last sweep
	lastAll time.Time       // begin of the last one over all
	grown   map[string]bool // directories of principals that kept something since
}

// NewRetention begins with a sweep over all.
func NewRetention(state string, c config.Results, log *slog.Logger) *Retention {
	days := c.KeepDays
	if days <= 0 {
		days = keptDays
	}
	r := &Retention{
		dir: filepath.Join(state, Dir), age: time.Duration(days) * 24 * time.Hour, most: keptBytes,
		now: time.Now, log: log, grown: map[string]bool{},
	}
	r.Look()
	return r
}

// Kept notes that a session whose shelf is dir may have kept something, and begins a sweep if it is time.
func (r *Retention) Kept(dir string) {
	// dir is <r.dir>/<principal>/<session>/tool-results.
	if rest, err := filepath.Rel(r.dir, dir); err == nil && filepath.IsLocal(rest) {
		principal, _, _ := strings.Cut(filepath.ToSlash(rest), "/")
		r.mu.Lock()
		r.grown[principal] = true
		r.mu.Unlock()
	}
	r.Look()
}

// Look begins a sweep if the last one was long enough ago, none runs, and there is something to look at. Calls and the
// clock of an idle server run it.
func (r *Retention) Look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	all := now.Sub(r.lastAll) >= sweepAll
	if r.closed || r.running || now.Sub(r.last) < sweepPause || !all && len(r.grown) == 0 {
		return
	}
	grown := r.grown
	r.grown, r.last, r.running = map[string]bool{}, now, true
	if all {
		r.lastAll = now
	}
	r.sweeps.Go(func() {
		r.sweep(func(principal string) bool { return all || grown[principal] })
		r.mu.Lock()
		defer r.mu.Unlock()
		r.running = false
	})
}

// Close waits for the sweep that runs; no other begins.
func (r *Retention) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.sweeps.Wait()
}

// sweep looks through the principals that are wanted.
func (r *Retention) sweep(wanted func(principal string) bool) {
	principals, err := os.ReadDir(r.dir)
	if err != nil {
		return // there were no sessions yet
	}
	for _, p := range principals {
		if p.IsDir() && wanted(p.Name()) {
			r.sweepPrincipal(filepath.Join(r.dir, p.Name()))
		}
	}
}

// sweepPrincipal removes sessions that nobody has written to for long, then files that are too old, then the oldest of
// those that are too much.
func (r *Retention) sweepPrincipal(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it holds no sessions
	}
	var files []keptFile
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() {
			continue // what is a link is not followed
		}
		switch old, err := r.abandoned(path); {
		case err != nil: // what cannot be looked at is not removed
		case old:
			r.remove(path, os.RemoveAll)
		default:
			files = append(files, keptFiles(path)...)
		}
	}
	slices.SortFunc(files, func(a, b keptFile) int { return a.last.Compare(b.last) })
	var sum int64
	for _, f := range files {
		sum += f.size
	}
	for _, f := range files {
		age := r.now().Sub(f.last)
		if f.open || age < r.age && (sum <= r.most || f.job && age < keptJobs) {
			continue
		}
		if r.remove(f.path, os.Remove) {
			sum -= f.size
		}
	}
}

// abandoned says whether nobody has written to a session for long, and no process holds the lock on what it remembers.
// That is looked at last: the walk over the files takes longer. Whoever comes between the look and the end of the
// removal still loses what was there, and may have a call fail; the next call makes the directories anew, but what a
// process remembers is then kept without the lock, or not at all. Sessions over HTTP have no lock, so for them that
// window begins with the walk.
func (r *Retention) abandoned(path string) (bool, error) {
	last, err := lastWritten(path)
	return err == nil && r.now().Sub(last) >= r.age && !state.SnapshotInUse(path), err
}

// remove removes a file or a session. One that is gone already was removed by another process.
func (r *Retention) remove(path string, by func(string) error) bool {
	if err := by(path); err != nil && !os.IsNotExist(err) {
		r.log.Warn("what was kept too long cannot be removed", "path", path, "err", err)
		return false
	}
	return true
}

// A keptFile is a kept result, or the log of a job.
type keptFile struct {
	path string
	size int64
	last time.Time // when it was written to
	job  bool
	open bool // the job may still run
}

// keptFiles are those of one session. What else lies there is not touched.
func keptFiles(session string) []keptFile {
	var all []keptFile
	for _, dir := range []string{"tool-results", "jobs"} {
		dir := filepath.Join(session, dir)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue // it has none, or a link is in its place, which leads to files that are not ours
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it was removed meanwhile
		}
		names := map[string]bool{}
		for _, e := range entries {
			names[e.Name()] = true
		}
		for _, e := range entries {
			base, isLog := strings.CutSuffix(e.Name(), ".log")
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() || !isLog && filepath.Ext(e.Name()) != ".txt" {
				continue
			}
			all = append(all, keptFile{
				path: filepath.Join(dir, e.Name()), size: info.Size(), last: info.ModTime(), job: isLog,
				open: isLog && (names[base+".out"] || names[base+".err"]), // the spools of a job go with its shell
			})
		}
	}
	return all
}

// lastWritten is the newest time of a file below path, or that of path if there is none. Directories do not count: a
// sweep writes to them, too.
func lastWritten(path string) (newest time.Time, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
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
	if err == nil && newest.IsZero() {
		var info fs.FileInfo
		if info, err = os.Stat(path); err == nil {
			newest = info.ModTime()
		}
	}
	return newest, err
}
