package sessions

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/server/config"
	"codehand/server/state"
)

// A past is a directory of sessions in which files have an age.
type past struct {
	t   *testing.T
	dir string // of sessions
	now time.Time
}

func newPast(t *testing.T) *past {
	return &past{t: t, dir: filepath.Join(t.TempDir(), Dir), now: time.Now()}
}

// put writes a file of size bytes that is age old.
func (p *past) put(name string, size int, age time.Duration) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	must(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(p.t, os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600))
	at := p.now.Add(-age)
	for ; path != p.dir; path = filepath.Dir(path) {
		must(p.t, os.Chtimes(path, at, at))
	}
}

// left are the files that are there.
func (p *past) left() []string {
	p.t.Helper()
	names := []string{}
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(p.dir, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if !os.IsNotExist(err) {
		must(p.t, err)
	}
	return names
}

func (p *past) wants(names ...string) {
	p.t.Helper()
	if got := p.left(); !slices.Equal(got, names) {
		p.t.Errorf("left are  %q\nexpected %q", got, names)
	}
}

// retention over the directory, which has not looked yet.
func (p *past) retention(most int64) *Retention {
	return &Retention{
		dir: p.dir, age: 30 * day, most: most, now: func() time.Time { return p.now }, log: slog.New(slog.DiscardHandler), grown: map[string]bool{},
	}
}

const day = 24 * time.Hour

func everybody(string) bool { return true }

// TestSweepByAge: what nobody has written to for 30 days goes, a session whole, in one that lives on file by file; but not
// what is not ours, nor the log of a job that may run.
func TestSweepByAge(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.retention(1 << 20).sweep(everybody) // there is nothing yet
	p.put("a/old/tool-results/x-t.txt", 10, 31*day)
	p.put("a/old/jobs/job_a.log", 10, 45*day)
	p.put("a/old/jobs/job_a.out", 10, 45*day)
	p.put("a/young/tool-results/x-t.txt", 10, 29*day)
	p.put("a/mixed/tool-results/old-t.txt", 10, 31*day)
	p.put("a/mixed/tool-results/new-t.txt", 10, day)
	p.put("a/mixed/tool-results/other", 10, 31*day)
	p.put("a/mixed/jobs/job_ended.log", 10, 31*day)
	p.put("a/mixed/jobs/job_open.log", 10, 31*day)
	p.put("a/mixed/jobs/job_open.out", 10, 31*day)
	p.put("b/s/tool-results/x-t.txt", 10, 31*day)
	must(t, os.MkdirAll(filepath.Join(p.dir, "b/empty/jobs"), 0o700))

	p.retention(1 << 20).sweep(func(principal string) bool { return principal == "a" })
	p.wants("a/mixed/jobs/job_open.log", "a/mixed/jobs/job_open.out", "a/mixed/tool-results/new-t.txt", "a/mixed/tool-results/other",
		"a/young/tool-results/x-t.txt", "b/s/tool-results/x-t.txt")
	p.retention(1 << 20).sweep(everybody)
	if _, err := os.Stat(filepath.Join(p.dir, "b/s")); err == nil {
		t.Error("the session of another principal is left")
	}
	if _, err := os.Stat(filepath.Join(p.dir, "b/empty")); err != nil {
		t.Error("a session that is young and empty was removed: ", err)
	}
}

// TestSweepSparesWhoComesBack: what a session remembered went with it after 30 days, though a process was using it again. One
// that was written to, or whose lock was taken, since the sweep began is spared.
func TestSweepSparesWhoComesBack(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for _, name := range []string{"s1", "s2", "s3"} {
		p.put("a/"+name+"/state.json", 10, 31*day)
		p.put("a/"+name+"/state.lock", 0, 31*day)
	}
	memory := state.NewMemory(state.MemoryOptions{})
	defer func() { must(t, memory.Close()) }()
	var snapshot *state.Snapshot
	r := p.retention(1 << 20)
	looks := 0
	r.now = func() time.Time {
		switch looks++; looks {
		case 1: // it has seen all names, and of s1 all files
			p.put("a/s2/tool-results/new-t.txt", 10, 0)
		case 3: // and now of s3
			var err error
			snapshot, err = state.OpenSnapshot(t.Context(), state.Scoped(memory, "sess.a.s3"), state.SnapshotOptions{Dir: filepath.Join(p.dir, "a", "s3")})
			must(t, err)
		}
		return p.now
	}
	r.sweepPrincipal(filepath.Join(p.dir, "a"))
	s2 := []string{"a/s2/state.json", "a/s2/state.lock", "a/s2/tool-results/new-t.txt"}
	p.wants(append(s2, "a/s3/state.json", "a/s3/state.lock")...)
	must(t, snapshot.Close())
	p.put("a/s3/state.json", 10, 31*day) // it was written at the end
	p.retention(1 << 20).sweep(everybody)
	p.wants(s2...)
}

// TestSweepKeepsNames: a session that cannot be removed is tried again at the next sweep, in its place.
func TestSweepKeepsNames(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.put("a/s/jobs/job_a.log", 10, 31*day)
	jobs := filepath.Join(p.dir, "a", "s", "jobs")
	must(t, os.Chmod(jobs, 0o500))
	defer func() { must(t, os.Chmod(jobs, 0o700)) }()
	if f, err := os.Create(filepath.Join(jobs, "x")); err == nil {
		must(t, f.Close())
		t.Skip("nothing keeps us from removing files here")
	}
	for range 2 {
		p.retention(1 << 20).sweep(everybody)
		p.wants("a/s/jobs/job_a.log")
	}
}

// TestSweepFollowsNoLink: a link in the place of a session, or of its directory, made the sweep remove the old text files of
// whatever it led to.
func TestSweepFollowsNoLink(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.put("a/s/tool-results/new-t.txt", 10, day)
	other := &past{t: t, dir: t.TempDir(), now: p.now}
	other.put("docs/diary.txt", 10, 400*day)
	other.put("session/tool-results/diary.txt", 10, 400*day)
	for link, to := range map[string]string{"a/s/jobs": "docs", "a/linked": "session"} {
		if err := os.Symlink(filepath.Join(other.dir, to), filepath.Join(p.dir, link)); err != nil {
			t.Skipf("links cannot be made here: %v", err)
		}
	}
	p.retention(1).sweep(everybody)
	other.wants("docs/diary.txt", "session/tool-results/diary.txt")
}

// TestSweepBySize: of more than a principal may have, the oldest go, whichever session they are of; of jobs only those
// that ended a day ago. Another principal's do not count.
func TestSweepBySize(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.put("a/s1/tool-results/1-t.txt", 400, 9*day)
	p.put("a/s2/tool-results/2-t.txt", 400, 8*day)
	p.put("a/s1/jobs/job_old.log", 400, 7*day)
	p.put("a/s1/jobs/job_open.log", 400, 6*day)
	p.put("a/s1/jobs/job_open.err", 0, 6*day)
	p.put("a/s2/tool-results/3-t.txt", 400, 5*time.Hour)
	p.put("a/s2/jobs/job_new.log", 400, 4*time.Hour)
	p.put("a/s1/tool-results/4-t.txt", 400, time.Hour)
	p.put("b/s/tool-results/x-t.txt", 5_000, day)

	p.retention(2_800).sweep(func(principal string) bool { return principal == "a" })
	if got := len(p.left()); got != 9 {
		t.Errorf("%d files are left, though there is room for all", got)
	}
	p.retention(2_000).sweep(func(principal string) bool { return principal == "a" })
	p.wants("a/s1/jobs/job_old.log", "a/s1/jobs/job_open.err", "a/s1/jobs/job_open.log", "a/s1/tool-results/4-t.txt",
		"a/s2/jobs/job_new.log", "a/s2/tool-results/3-t.txt", "b/s/tool-results/x-t.txt")
	p.retention(1_000).sweep(func(principal string) bool { return principal == "a" })
	p.wants("a/s1/jobs/job_open.err", "a/s1/jobs/job_open.log", "a/s2/jobs/job_new.log", "b/s/tool-results/x-t.txt")
	p.retention(1_000).sweep(everybody)
	p.wants("a/s1/jobs/job_open.err", "a/s1/jobs/job_open.log", "a/s2/jobs/job_new.log")
}

// TestRetentionLooks: sweeps run at most once a minute, over those who kept something, and once an hour over all; none
// begins after the end.
func TestRetentionLooks(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	r := p.retention(1_000)
	look := func(principal string, want ...string) {
		t.Helper()
		if principal != "" {
			r.Kept(filepath.Join(p.dir, principal, "s", "tool-results"))
		} else {
			r.Look()
		}
		r.sweeps.Wait()
		p.wants(want...)
	}
	a, b := "a/s/tool-results/x-t.txt", "b/s/tool-results/x-t.txt"
	p.put(a, 2_000, time.Hour)
	look("") // the first one is over all
	p.put(a, 2_000, time.Hour)
	p.put(b, 2_000, time.Hour)
	p.now = p.now.Add(59 * time.Second)
	look("a", a, b)
	p.now = p.now.Add(time.Second)
	look("", b)
	p.put(a, 2_000, time.Hour)
	p.now = p.now.Add(time.Minute)
	look("", a, b) // nobody kept anything
	look("b", a)
	p.now = p.now.Add(time.Hour)
	look("")
	p.put(a, 2_000, time.Hour)
	r.Close()
	p.now = p.now.Add(time.Hour)
	look("a", a)
}

// TestRetentionFails: what cannot be removed is said, and the rest goes all the same.
func TestRetentionFails(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	var log bytes.Buffer
	r := p.retention(0)
	r.log = slog.New(slog.NewTextHandler(&log, nil))
	if r.remove("x", func(string) error { return fmt.Errorf("remove x: %w", fs.ErrPermission) }) || !strings.Contains(log.String(), "cannot be removed") {
		t.Errorf("log: %q", &log)
	}
	log.Reset()
	if !r.remove("x", func(string) error { return &fs.PathError{Op: "remove", Path: "x", Err: fs.ErrNotExist} }) || log.Len() > 0 {
		t.Errorf("a file that another process removed: %q", &log)
	}
}

// TestRetentionDays: files are kept for the days that the operator gives, or for 30.
func TestRetentionDays(t *testing.T) {
	t.Parallel()
	for given, want := range map[int]time.Duration{0: 30 * day, 3: 3 * day} {
		r := NewRetention(t.TempDir(), config.Results{KeepDays: given}, slog.New(slog.DiscardHandler))
		r.Close()
		if r.age != want || r.most != 1<<30 {
			t.Errorf("%d days: kept are %s, %d bytes", given, r.age, r.most)
		}
	}
}
