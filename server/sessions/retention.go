package sessions

import (
	"cmp"
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
	// keptDays is how long what a session left on disk is kept by default (results.keep_days): kept results and job
	// logs, which a client that resumes a conversation may still name.
	keptDays = 30
	// keptBytes is how much of it all sessions together keep by default (results.max_bytes).
	keptBytes = 1 << 30
	// sessionShare is the part of that which one session may have, so that one cannot take all.
	sessionShare = 4
	// slack is the part of the limit that a sweep leaves free, and after which the next one begins, so that a server at
	// its limit does not look through all sessions at each call.
	slack = 16
	// mostHeld is of how many sessions it is known what they had.
	mostHeld = 10_000
	// longestJob is more than any job may run: spool files without a write for so long belong to a process that was
	// killed.
	longestJob = 24 * time.Hour
	// sweepPause is the time between two sweeps for age.
	sweepPause = time.Hour
)

// area is where sessions keep what is too large for the Store, below the state directory: a directory for each
// principal, and in it one for each session, with the directories jobs and tool-results.
const area = "sessions"

// A Retention removes what was kept too long, and the oldest of what is too much. A session is held to its share at the
// end of each call that keeps something. Sweeps over all sessions run beside the calls, one at a time; several
// processes may sweep the same directory. It is safe for concurrent use.
type Retention struct {
	dir    string
	age    time.Duration
	most   int64                  // bytes of all sessions
	runs   func(call string) bool // a call that may still name its result in an answer
	now    func() time.Time
	log    *slog.Logger
	sweeps sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	running bool
	last    time.Time         // begin of the last sweep
	grown   int64             // bytes that sessions of this process kept since
	held    map[string]looked // what a session had when it last kept something, by its directory
}

// A looked is what a session had at one look.
type looked struct {
	bytes int64
	// when names in its directories last changed; zero: less than settled before the look, so that a later change may
	// have the same time
	changed [2]time.Time
}

// settled is how old the time of a directory must be to prove that nothing changed since: clocks of file systems tick.
const settled = 2 * time.Second

// keptIn are the directories of a session that hold what it keeps.
var keptIn = [2]string{"tool-results", "jobs"}

// NewRetention begins with a sweep over all. runs says whether a call of that id has not been answered yet: what it
// kept stays.
func NewRetention(state string, c config.Results, runs func(call string) bool, log *slog.Logger) *Retention {
	r := &Retention{
		dir: filepath.Join(state, area), age: time.Duration(cmp.Or(c.KeepDays, keptDays)) * 24 * time.Hour,
		most: cmp.Or(c.MaxBytes, keptBytes), runs: runs, now: time.Now, log: log, held: map[string]looked{},
	}
	r.Look()
	return r
}

// Kept holds the session whose shelf is dir to its share, because a call of it may have kept something, and begins a
// sweep if all sessions together may have too much.
func (r *Retention) Kept(dir string) {
	session := filepath.Dir(dir) // <r.dir>/<principal>/<session>
	if rest, err := filepath.Rel(r.dir, session); err != nil || !filepath.IsLocal(rest) {
		return // nothing of ours
	}
	share := r.most / sessionShare
	changed := r.changed(session)
	r.mu.Lock()
	before, known := r.held[session]
	r.mu.Unlock()
	if known && before.bytes <= share && before.changed == changed && changed != [2]time.Time{} {
		return // such as one of many looks at a job
	}
	left := r.trim(r.keptFiles(session), share)
	r.mu.Lock()
	r.grown += max(left-r.held[session].bytes, 0)
	r.held[session] = looked{left, changed}
	r.mu.Unlock()
	r.Look()
}

// changed is when names in the directories of a session last changed, where that proves something. A kept result is a
// new name, and a job that ends leaves its log and loses the names of its spools.
func (r *Retention) changed(session string) (at [2]time.Time) {
	for i, name := range keptIn {
		info, err := os.Lstat(filepath.Join(session, name))
		switch {
		case err != nil: // it keeps nothing there
		case r.now().Sub(info.ModTime()) < settled:
			return [2]time.Time{}
		default:
			at[i] = info.ModTime()
		}
	}
	return at
}

// Look begins a sweep if the last one was long enough ago or much was kept since, and none runs. Calls and the clock of
// an idle server run it.
func (r *Retention) Look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.closed || r.running || now.Sub(r.last) < sweepPause && r.grown < r.most/slack {
		return
	}
	r.last, r.grown, r.running = now, 0, true
	if len(r.held) > mostHeld {
		clear(r.held)
	}
	r.sweeps.Go(func() {
		r.sweep()
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

// sweep looks through all sessions. If they have too much together, it removes the oldest sessions of the principal
// with the most first: a principal that floods does not cost others what they kept.
func (r *Retention) sweep() {
	principals, err := os.ReadDir(r.dir)
	if err != nil {
		return // there were no sessions yet
	}
	var all []*holding
	var sum int64
	for _, p := range principals {
		if p.IsDir() {
			h := r.sweepPrincipal(filepath.Join(r.dir, p.Name()))
			all, sum = append(all, h), sum+h.size
		}
	}
	if sum <= r.most {
		return
	}
	for goal := r.most - r.most/slack; sum > goal; {
		most := slices.MaxFunc(all, func(a, b *holding) int { return cmp.Compare(a.size, b.size) })
		if len(most.files) == 0 {
			if most.size == 0 {
				return // no principal has anything that may go
			}
			most.size = 0
			continue
		}
		oldest := most.files[0]
		most.files, most.size = most.files[1:], most.size-oldest.size
		if r.remove(oldest.path, os.Remove) {
			sum -= oldest.size
		}
	}
}

// A holding is what the sessions of a principal keep.
type holding struct {
	files []keptFile // that may go, the oldest first
	size  int64      // of all, also of those that may not go
}

// sweepPrincipal removes sessions without a write for long, then files that are too old, then the oldest of the
// sessions that have too much, and returns what may still go.
func (r *Retention) sweepPrincipal(dir string) *holding {
	h := &holding{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return h // it holds no sessions
	}
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
			files := slices.DeleteFunc(r.keptFiles(path), func(f keptFile) bool {
				return !f.live && r.now().Sub(f.last) >= r.age && r.remove(f.path, os.Remove)
			})
			h.size += r.trim(files, r.most/sessionShare)
			h.files = append(h.files, r.keptFiles(path)...)
		}
	}
	h.files = slices.DeleteFunc(h.files, func(f keptFile) bool { return f.live })
	slices.SortFunc(h.files, byAge)
	return h
}

// trim removes the oldest of files until the rest has at most that many bytes, and returns how many it has.
func (r *Retention) trim(files []keptFile, most int64) (left int64) {
	for _, f := range files {
		left += f.size
	}
	if left <= most {
		return left
	}
	slices.SortFunc(files, byAge)
	for _, f := range files[:len(files)-1] { // the newest was named just now
		if left <= most {
			break
		}
		if !f.live && r.remove(f.path, os.Remove) {
			left -= f.size
		}
	}
	return left
}

func byAge(a, b keptFile) int { return a.last.Compare(b.last) }

// abandoned says whether a session had no write for long, and no process holds the lock on what it remembers. It looks
// at the lock last: the walk over the files takes longer. A client that comes between that look and the end of the
// removal still loses what was there, and may have a call fail. The next call makes the directories anew, but what a
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

// A keptFile is a kept result, or a file of a job that does not run.
type keptFile struct {
	path string
	size int64
	last time.Time // when it was written to
	live bool      // a call kept it that is not answered yet: it counts and stays
}

// keptFiles are those of one session, without what a job writes. What else lies there is not touched.
func (r *Retention) keptFiles(session string) []keptFile {
	var all []keptFile
	for _, dir := range keptIn {
		dir := filepath.Join(session, dir)
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue // it has none, or a link is in its place, which leads to files that are not ours
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it was removed meanwhile
		}
		writing := map[string]bool{} // jobs by name: their spool files go when they end
		first := len(all)
		for _, e := range entries {
			ext := filepath.Ext(e.Name())
			base := strings.TrimSuffix(e.Name(), ext)
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() || !slices.Contains(keptSuffixes, ext) {
				continue
			}
			call, _, _ := strings.Cut(base, "-")
			f := keptFile{path: filepath.Join(dir, e.Name()), size: info.Size(), last: info.ModTime(),
				live: ext == ".txt" && r.runs(call)}
			if (ext == ".out" || ext == ".err") && r.now().Sub(f.last) < longestJob {
				writing[base] = true
			}
			all = append(all, f)
		}
		ours := slices.DeleteFunc(all[first:], func(f keptFile) bool {
			base := strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
			return filepath.Ext(f.path) != ".txt" && filepath.Ext(f.path) != ".bin" && writing[base]
		})
		all = all[:first+len(ours)]
	}
	return all
}

// keptSuffixes are those of results, of what was fetched and is no text, and of a job's log and its two spools.
var keptSuffixes = []string{".txt", ".bin", ".log", ".out", ".err", ".events"}

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
