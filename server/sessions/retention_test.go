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
	return &past{t: t, dir: filepath.Join(t.TempDir(), area), now: time.Now()}
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
		dir: p.dir, age: 30 * day, most: most, runs: func(call string) bool { return call == "open" }, now: func() time.Time { return p.now },
		log: slog.New(slog.DiscardHandler), held: map[string]looked{},
	}
}

const day = 24 * time.Hour

// TestSweepByAge: what had no write for 30 days goes, a session whole, in one that lives on file by file; but not what
// is not ours, nor the files of a job that may run. Those of a job whose server was killed go.
func TestSweepByAge(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.retention(1 << 20).sweep() // there is nothing yet
	p.put("a/old/tool-results/x-t.txt", 10, 31*day)
	p.put("a/old/jobs/job_a.log", 10, 45*day)
	p.put("a/old/jobs/job_a.out", 10, 45*day)
	p.put("a/young/tool-results/x-t.txt", 10, 29*day)
	p.put("a/mixed/tool-results/old-t.txt", 10, 31*day)
	p.put("a/mixed/tool-results/new-t.txt", 10, day)
	p.put("a/mixed/tool-results/other", 10, 31*day)
	p.put("a/mixed/jobs/job_ended.log", 10, 31*day)
	p.put("a/mixed/jobs/job_open.log", 10, 31*day)
	p.put("a/mixed/jobs/job_open.out", 10, time.Hour)
	p.put("a/mixed/jobs/job_killed.log", 10, 31*day)
	p.put("a/mixed/jobs/job_killed.err", 10, 31*day)
	p.put("b/s/tool-results/x-t.txt", 10, 31*day)
	must(t, os.MkdirAll(filepath.Join(p.dir, "b/empty/jobs"), 0o700))

	p.retention(1 << 20).sweep()
	p.wants("a/mixed/jobs/job_open.log", "a/mixed/jobs/job_open.out", "a/mixed/tool-results/new-t.txt", "a/mixed/tool-results/other",
		"a/young/tool-results/x-t.txt")
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
	p.retention(1 << 20).sweep()
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
		p.retention(1 << 20).sweep()
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
	p.retention(1).sweep()
	other.wants("docs/diary.txt", "session/tool-results/diary.txt")
}

// TestSessionShare: ten commands left 641 MB in 7 s. At the end of a call its session has no more than a quarter of what
// all may have; the oldest files go, but never what an open call kept nor what a job writes. Other sessions are not looked
// at.
func TestSessionShare(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.put("a/s1/tool-results/open-t.txt", 400, 9*time.Hour)
	p.put("a/s1/tool-results/1-t.txt", 400, 8*time.Hour)
	p.put("a/s1/jobs/job_ended.log", 400, 7*time.Hour)
	p.put("a/s1/jobs/job_runs.log", 4_000, 6*time.Hour)
	p.put("a/s1/jobs/job_runs.err", 4_000, 6*time.Hour)
	p.put("a/s1/tool-results/2-t.txt", 400, 5*time.Hour)
	p.put("a/s1/tool-results/3-t.txt", 400, 4*time.Hour)
	p.put("a/s2/tool-results/4-t.txt", 4_000, 9*time.Hour)
	r := p.retention(8_000)
	r.Close() // so that no sweep begins
	r.Kept(filepath.Join(p.dir, "a", "s1", "tool-results"))
	if all := p.left(); len(all) != 8 {
		t.Errorf("left are %q, though there is room for all", all)
	}
	r.most = 4_800
	r.Kept(filepath.Join(p.dir, "a", "s1", "tool-results"))
	p.wants("a/s1/jobs/job_runs.err", "a/s1/jobs/job_runs.log", "a/s1/tool-results/2-t.txt", "a/s1/tool-results/3-t.txt",
		"a/s1/tool-results/open-t.txt", "a/s2/tool-results/4-t.txt")
}

// TestLooksOnlyAtChanges: each look at a job read both directories of its session. One in which no name has changed is
// not read again; one that may have changed since, or that has too much, is.
func TestLooksOnlyAtChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		age   time.Duration // of the directories
		first int
		looks bool
	}{
		{"settled", time.Minute, 400, false},
		{"too new to tell", time.Second, 400, true},
		{"too much already", time.Minute, 4_000, true},
	} {
		p := newPast(t)
		p.put("a/s/tool-results/1-t.txt", c.first, c.age)
		p.put("a/s/tool-results/2-t.txt", 400, c.age)
		r := p.retention(4_000)
		r.Close() // so that no sweep begins
		dir := filepath.Join(p.dir, "a", "s", "tool-results")
		r.Kept(dir)
		p.put("a/s/tool-results/2-t.txt", 4_000, c.age) // a look would find that it has too much
		r.Kept(dir)
		if looked := len(p.left()) == 1; looked != c.looks {
			t.Errorf("%s: looked is %v", c.name, looked)
		}
		p.put("a/s/tool-results/3-t.txt", 10, 0)
		r.Kept(dir)
		p.wants("a/s/tool-results/3-t.txt")
	}
}

// TestSweepBySize: of more than all may have, the oldest files of the principal with the most go, from any of its
// sessions.
func TestSweepBySize(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	for i := range 8 {
		p.put(fmt.Sprintf("a/s%d/tool-results/%d-t.txt", i%4, i), 500, time.Duration(9-i)*day)
	}
	p.put("b/s/tool-results/x-t.txt", 500, 20*day)
	p.retention(4_500).sweep()
	if got := len(p.left()); got != 9 {
		t.Errorf("%d files are left, though there is room for all", got)
	}
	p.retention(4_000).sweep() // down to 3,750
	p.wants("a/s0/tool-results/4-t.txt", "a/s1/tool-results/5-t.txt", "a/s2/tool-results/2-t.txt", "a/s2/tool-results/6-t.txt",
		"a/s3/tool-results/3-t.txt", "a/s3/tool-results/7-t.txt", "b/s/tool-results/x-t.txt")
}

// TestRetentionLooks: sweeps run once an hour, and as soon as much was kept; none begins after the end.
func TestRetentionLooks(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	r := p.retention(16_000)
	kept := func(name string, size int, age time.Duration) {
		t.Helper()
		p.put(name, size, age)
		r.Kept(filepath.Join(p.dir, filepath.Dir(name)))
		r.sweeps.Wait()
	}
	old, x, y := "a/old/tool-results/x-t.txt", "b/s/tool-results/x-t.txt", "b/s/tool-results/y-t.txt"
	p.put(old, 10, 31*day)
	r.Look() // the first one
	r.sweeps.Wait()
	p.wants()
	p.put(old, 10, 31*day)
	kept(x, 900, 0)
	p.wants(old, x)
	kept(y, 900, 0) // more than a sixteenth of all since
	p.wants(x, y)
	p.put(old, 10, 31*day)
	p.now = p.now.Add(59 * time.Minute)
	r.Look()
	r.sweeps.Wait()
	p.wants(old, x, y)
	p.now = p.now.Add(time.Minute)
	r.Look()
	r.sweeps.Wait()
	p.wants(x, y)
	p.put(old, 10, 40*day)
	r.Close()
	p.now = p.now.Add(time.Hour)
	r.Look()
	r.sweeps.Wait()
	p.wants(old, x, y)
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

// TestRetentionSettings: files are kept for the days and up to the size that the operator gives, or for 30 days and 1 GiB.
func TestRetentionSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given config.Results
		age   time.Duration
		most  int64
	}{{config.Results{}, 30 * day, 1 << 30}, {config.Results{KeepDays: 3, MaxBytes: 1 << 20}, 3 * day, 1 << 20}} {
		r := NewRetention(t.TempDir(), c.given, func(string) bool { return false }, slog.New(slog.DiscardHandler))
		r.Close()
		if r.age != c.age || r.most != c.most {
			t.Errorf("%+v: kept are %s, %d bytes", c.given, r.age, r.most)
		}
	}
}
